"""What stands in the reports of `../shared/vendor_reports`, read off each file by eye and not printed by the reader."""


def figures(stage, design, *usage, **others):
    """`usage`: LUTs, registers, DSPs, blocks of 18 Kb, UltraRAM."""
    names = ("lut", "ff", "dsp", "bram18", "uram")
    return {"stage": stage, "design": design, **dict.fromkeys(names), **dict(zip(names, usage, strict=False)), **others}


def clocked(asked, estimated, slack):
    return {"clock_ns": asked, "est_clock_ns": estimated, "slack_ns": slack}


def both(latency, interval):
    return {"latency_min": latency, "latency_max": latency, "interval_min": interval, "interval_max": interval}


def smarthls(top, lut, ff, dsp, lsram, usram, asked, reached, slack):
    other = {"lsram": lsram, "usram": usram}
    return [figures("route", top, lut, ff, dsp, other=other, **clocked(asked, reached, slack))]


def simulated(top):
    return figures("cosim", top, other={"calls": 16800, "simulated_cycles": 151200}, passed=True)


RESIZE = figures("route", "resize", None, 2749, 17, other={"alm": 1174, "ram_block": 10}, est_clock_ns=1000 / 148.96)
MYPROJECT = figures(
    "route",
    "myproject",
    None,
    110563,
    1023,
    other={"alm": 79599, "ram_block": 2, "mlab": 10},
    est_clock_ns=1000 / 222.72,
)
BFS = "_ZTSZZ3bfsvENKUlRN2cl4sycl7handlerEE70_32clES2_EUlT_E79_41"

EXPECTED = {
    "catapult/In_copy_2024.1_cycle.rpt": [figures("csynth", "In_copy", **both(4097, 4098), clock_ns=10.0)],
    "catapult/In_copy_2024.1_rtl.rpt": [
        figures("csynth", "In_copy", **both(4097, 4098), **clocked(None, 0.620141, 9.379859), tool_version="2024.1")
    ],
    "catapult/Out_copy_2024.1_cycle.rpt": [figures("csynth", "Out_state", **both(3073, 3074), clock_ns=10.0)],
    "catapult/PE_2024.1_cycle.rpt": [
        figures("csynth", "PE", **both(9217, 9218), clock_ns=10.0, date="Tue May 21 17:01:30 CST 2024")
    ],
    "catapult/edgemap_2024.1_rtl.rpt": [
        figures(
            "csynth",
            "EdgeDetect_IP::EdgeDetect_Top",
            2157,
            None,
            0,
            **both(6, 6),
            **clocked(None, 8.245001, 1.754999),
            date="Sat Apr 13 15:03:42 CST 2024",
        )
    ],
    "catapult/fft_v1_cycle.rpt": [figures("csynth", "FFT", **both(1, 8), clock_ns=10.0, tool_version="2022.2_1")],
    "catapult/fft_v1_rtl.rpt": [
        figures("csynth", "FFT", 4318, None, 1, **both(1, 8), **clocked(None, 9.080007, 0.919993))
    ],
    "catapult/fft_v3_cycle.rpt": [figures("csynth", "FFT", **both(2, 1), clock_ns=10.0)],
    "catapult/fft_v3_rtl.rpt": [
        figures("csynth", "FFT", 4870, None, 6, **both(2, 1), **clocked(None, 8.505005, 1.494995))
    ],
    "intel_hls/aoc_add_fit_quartus_data.js": [
        figures(
            "route",
            None,
            None,
            106088,
            14,
            est_clock_ns=1000 / 225.27,
            other={
                "alm": 57294,
                "ram_block": 1184,
                "mlab": 540,
                "system_alm": 84229,
                "system_ff": 146217,
                "system_dsp": 14,
                "system_ram_block": 1319,
            },
        )
    ],
    "intel_hls/aoc_aplusb_report_data.js": [
        # Kernel, global interconnect and ROM, without the board's interface.
        figures("csynth", "aplusb", 2849 + 4121, 8721 + 5284 + 67, 1, ram_block=33 + 2, system_lut=73770)
    ],
    "intel_hls/ipp17.1_fit_quartus.json": [RESIZE],
    "intel_hls/ipp17.1_fit_report_data.js": [
        figures("csynth", "resize", 5690, 7370, 21, tool_version="17.1.0 Build 590", part="5CEFA9F23I7", ram_block=8),
        RESIZE,
    ],
    "intel_hls/ipp18.1_nofit_report_data.js": [
        figures("csynth", "loop_pipeline", 4708, 4358, 1, part="10AX115U1F45I1SG", other={"ram_block": 0, "mlab": 1})
    ],
    "intel_hls/ipp19.1_hls4ml_fit_quartus.json": [MYPROJECT],
    "intel_hls/ipp19.1_hls4ml_fit_report_data.js": [
        figures("csynth", "myproject", 355176, 131480, 512, date="Wed Aug  7 19:09:30 2019", mlab=10),
        MYPROJECT,
    ],
    "intel_hls/ipp19.1_hls4ml_summary.json": [
        figures("csynth", "myproject", 355176, 131480, 511, ram_block=3, mlab=10)
    ],
    "intel_hls/ipp19.2_hls4ml_nofit_report_data.js": [
        figures("csynth", "myproject", 32287, 13058, 57, other={"ram_block": 0, "mlab": 411})
    ],
    "intel_hls/oneapi2021.1_bfs_report_data.js": [
        figures("csynth", BFS, 6452 + 2313, 16765 + 3521 + 67, 0, ram_block=99 + 61 + 2, mlab=73, system_lut=188715)
    ],
    "intel_hls/oneapi2023_fit_quartus_data.js": [
        figures(
            "route", None, None, 513089, 48, alm=212748, system_alm=440252, system_dsp=40, est_clock_ns=1000 / 288.10
        )
    ],
    "intel_hls/oneapi_filetransfer_report_data.js": [
        figures("csynth", "'lambda'(auto)", 2946 + 8779, 5605 + 12545 + 67, 0, ram_block=26 + 78 + 2, system_dsp=123)
    ],
    "intel_hls/oneapi_hls4ml_quartus.ndjson": [
        figures("route", "Myproject", 4182, 16419, 40, est_clock_ns=1000 / 597.73, alm=4521, ram_block=36, mlab=52)
    ],
    # 80 multipliers, of which two share a DSP.
    "intel_hls/oneapi_hls4ml_summary.ndjson": [figures("csynth", None, 2462, 7938, 40, ram_block=77, mlab=92)],
    "quartus/Boostedx_build_gateware_terasic_de1soc.fit.summary": [
        figures("route", "terasic_de1soc", None, 31257, 46, alm=15839, ram_block=99, memory_bit=636576)
    ],
    "quartus/El-Camino-GmbH_Hardware-Software_Qpro_output_files_AXC3000_MIPI.fit.summary": [
        figures("route", "AXC3000_MIPI", None, 42685, 95, alm=19629, ram_block=250, tool_version="25.3.0")
    ],
    "quartus/MiguelAcuervo_output_files_top.fit.summary": [
        figures(
            "route", "top", 4746, 2466, other={"logic_element": 5354, "memory_bit": 2048, "multiplier_9bit": 0}, rows=0
        )
    ],
    "quartus/Yesmurat_output_files_top.fit.summary": [
        figures("route", "top", None, 118, 0, alm=43, ram_block=0, tool_version="24.1std.0")
    ],
    "quartus/nabeel-at-intel_output_files_top.fit.rpt": [
        figures("route", "top", 8978, 10271, 0, alm=5477, ram_block=32, part="AGFB014R24A2I2V", rows=12)
    ],
    "quartus/nabeel-at-intel_output_files_top.fit.summary": [
        figures("route", "top", None, 10271, 0, alm=5477, memory_bit=524288, date="Thu Aug  8 11:06:26 2024")
    ],
    "quartus/srina-nemati_a.prj_quartus_quartus_compile.fit.rpt": [
        figures("route", "quartus_compile", 1953, 2920, 17, alm=1259, ram_block=10)
    ],
    "quartus/srina-nemati_a.prj_quartus_quartus_compile.fit.summary": [
        figures("route", "quartus_compile", None, 2920, 17, alm=1259, ram_block=10)
    ],
    "smarthls/Training1_l1381.summary.results.rpt": smarthls(
        "alpha_blend_smarthls_top", 369, 228, 6, 0, 0, 10.0, 2.548, 7.452
    ),
    "smarthls/Training1_l2160.summary.results.rpt": smarthls(
        "RGB2YCbCr_smarthls_top", 545, 269, 5, 0, 0, 10.0, 2.947, 7.053
    ),
    "smarthls/Training1_l2263.summary.results.rpt": smarthls(
        "RGB2YCbCr_smarthls_top", 549, 336, 9, 0, 0, 10.0, 2.488, 7.512
    ),
    "smarthls/Training1_l2399.summary.results.rpt": smarthls(
        "YCbCr2RGB_smarthls_top", 431, 184, 5, 0, 0, 10.0, 1.231, 8.769
    ),
    "smarthls/Training1_l3189.summary.results.rpt": smarthls(
        "gaussian_filter_pipelined_top", 1194, 896, 0, 4, 0, 10.0, 4.703, 5.297
    ),
    "smarthls/Training1_l3450.summary.results.rpt": smarthls("canny_top", 3526, 2545, 0, 10, 3, 10.0, 6.092, 3.908),
    "smarthls/Training2_l2912.summary.results.rpt": smarthls(
        "ClassifierPipeline_top", 8370, 5124, 20, 20, 48, 10.0, 5.427, 4.573
    ),
    "smarthls/Training2_l2949.summary.results.rpt": smarthls(
        "ClassifierPipeline_top", 7300, 4584, 20, 10, 44, 10.0, 5.022, 4.978
    ),
    "smarthls/Training3_l1454.summary.results.rpt": smarthls("wide_mult_top", 7708, 5186, 80, 0, 0, 10.0, 6.627, 3.373),
    "smarthls/Training4_l731.summary.results.rpt": smarthls(
        "vector_add_axi_target_memcpy_top", 1622, 707, 0, 2, 22, 5.0, 3.508, 1.492
    ),
    "smarthls/sobel_tutorial_l473.summary.results.rpt": smarthls(
        "sobel_filter_top", 611, 327, 0, 0, 0, 10.0, 1.776, 8.224
    ),
    "smarthls/sobel_tutorial_l657.summary.results.rpt": smarthls(
        "sobel_filter_top", 709, 336, 0, 0, 0, 10.0, 2.724, 7.276
    ),
    "smarthls/sobel_tutorial_l904.summary.results.rpt": smarthls(
        "sobel_filter_top", 727, 527, 0, 1, 0, 10.0, 4.761, 5.239
    ),
    "smarthls/vicg42_axislave_global.summary.results.rpt": [
        figures("synth", "hls_main_top", 478, 308, 1, part="MPF300TS-1FCG1152I", **clocked(None, None, None)),
        simulated("hls_main_top"),
    ],
    "smarthls/vicg42_axislave_internal.summary.results.rpt": [
        figures("synth", "hls_main_top", 460, 273, 1, part="MPF300TS-1FCG1152I", **clocked(None, None, None)),
        simulated("hls_main_top"),
    ],
    "vitis_hls/2022.1_read_romcode_csynth.xml": [
        figures(
            "csynth",
            "read_romcode",
            2634,
            1111,
            0,
            0,
            0,
            latency_min=2,
            latency_max=None,
            interval_min=3,
            interval_max=None,
            **clocked(10.0, 7.3, None),
        )
    ],
    "vitis_hls/2025.1_csynth.rpt": [figures("csynth", "fir_filter", 873, 1817, latency_max=263, interval_max=264)],
    "vitis_hls/2025.1_csynth.xml": [
        figures("csynth", "fir_filter", 873, 1817, 0, 0, 0, **both(263, 264), **clocked(10.0, 7.207, None))
    ],
    "vitis_hls/2025.1_failed_hls_cosim.rpt": [figures("cosim", None, **both(None, None), passed=False)],
    "vitis_hls/2025.1_fir_filter_csynth.rpt": [
        figures("csynth", "fir_filter", 873, 1817, 0, 0, 0, **both(263, 264), **clocked(10.0, 7.207, None))
    ],
    "vitis_hls/2025.1_hls_compile.rpt": [figures("csynth", "fir_filter", 873, 1817, latency_max=263, interval_max=264)],
    "vitis_hls/2025.1_hls_cosim.rpt": [figures("cosim", None, **both(263, None), passed=True)],
    "vitis_hls/hls4ml_interval_range_csynth.xml": [
        figures(
            "csynth",
            "myproject",
            15817,
            10368,
            17,
            32,
            0,
            latency_min=225244,
            latency_max=225290,
            interval_min=16386,
            interval_max=225282,
            **clocked(30.0, 20.557, None),
        )
    ],
    "vivado/2019.2_hier_percent_comma_util.rpt": [figures("route", "design_1_wrapper", 17654, 18333, 21, 2 * 2 + 6)],
    "vivado/2022.2_kernel_util_routed.rpt": [
        figures("route", "level0_wrapper", 76870, 59342, 100, 2 * 700, 0, lut_memory=1948, rows=5)
    ],
    "vivado/2023.2_noconstraint_timing_summary_routed.rpt": [
        figures("route", "myproject", **clocked(None, None, None))
    ],
    "vivado/2024.2_versal_kernel_util_routed.rpt": [
        figures("route", "vitis_design_wrapper", 324160, 414920, 1373, 2 * 119, 18, lut_memory=29013, rows=6)
    ],
    "vivado/2024.2_versal_route_timing_summary.rpt": [
        figures("route", "vitis_design_wrapper", **clocked(2.857, 2.857, 0.0))
    ],
}
NOT_FITTED = "no fit has been run"
UNKNOWN = "is no known vendor report"
REFUSED = {
    "intel_hls/ipp19.2_hls4ml_nofit_quartus.json": NOT_FITTED,
    "intel_hls/oneapi2023_nofit_quartus_data.js": NOT_FITTED,
    "intel_hls/oneapi_filetransfer_quartus.json": NOT_FITTED,
    "intel_hls/oneapi_filetransfer_quartus_data.js": NOT_FITTED,
    "intel_hls/oneapi_hls4ml_loop_attr.ndjson": UNKNOWN,
    "libero/top_compile_netlist_resources.xml": UNKNOWN,
    "libero/top_layout_log.log": UNKNOWN,
    "quartus/El-Camino-GmbH_Hardware-Software_Qpro_output_files_AXC3000_MIPI.sta.summary": UNKNOWN,
    "quartus/srina-nemati_a.prj_quartus_quartus_compile.sta.summary": UNKNOWN,
    # The documentation that quotes it left out what follows the timing.
    "smarthls/Training2_l2114.summary.results.rpt": "has no section 'Resource Usage'; the report is cut off",
    "vivado/2019.2_post_place_timing_summary.rpt": "are neither those after routing nor those after synthesis",
}
