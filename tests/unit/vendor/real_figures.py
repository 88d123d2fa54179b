"""What stands in the reports of `../shared/vendor_reports`, read off each file by eye and not printed by the reader."""


def figures(stage, design, *usage, **others):
    """`usage`: LUTs, registers, DSPs, blocks of 18 Kb, UltraRAM."""
    names = ("lut", "ff", "dsp", "bram18", "uram")
    return {"stage": stage, "design": design, **dict.fromkeys(names), **dict(zip(names, usage, strict=False)), **others}


def clocked(asked, estimated, slack):
    return {"clock_ns": asked, "est_clock_ns": estimated, "slack_ns": slack}


def both(latency, interval):
    return {"latency_min": latency, "latency_max": latency, "interval_min": interval, "interval_max": interval}


EXPECTED = {
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
UNKNOWN = "is no known vendor report"
REFUSED = {
    "quartus/El-Camino-GmbH_Hardware-Software_Qpro_output_files_AXC3000_MIPI.sta.summary": UNKNOWN,
    "quartus/srina-nemati_a.prj_quartus_quartus_compile.sta.summary": UNKNOWN,
    "vivado/2019.2_post_place_timing_summary.rpt": "are neither those after routing nor those after synthesis",
}
