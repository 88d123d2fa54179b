"""A run folder as the stages before one leave it, and the context of that stage."""

from fpgaprune.files import write_npz
from fpgaprune.flow.run import RunDirectory, Silent
from fpgaprune.flow.stages import NetworkFiles, StageContext
from fpgaprune.flow.task import check_data, predict
from fpgaprune.network import save_keras
from fpgaprune.values import MaskSet


def stage_context(folder, config, model, masks, samples, stem, types=None):
    """Return the context of a stage that reads `stem`.keras and its masks, and its types if there are some.

    `samples`: x and y, for training and for the figures.
    """
    (x, y), run = samples, RunDirectory(folder)
    files = [f"{stem}.keras", f"{stem}_masks.npz"]
    with run.locked():
        for name in ("trained.keras", files[0]):
            save_keras(model, run.file(name))
        MaskSet(masks).save(run.file(files[1]))
        if types is not None:
            files.append(f"{stem}_types.json")
            run.write_json(files[2], types)
        write_npz(run.file("trained_outputs.npz"), {"000": predict(model, x)})
        run.write_manifest()
    data = check_data("d", {"x_train": x, "y_train": y, "x_test": x, "y_test": y})
    return StageContext(run, config, data, Silent(), key="k", network=NetworkFiles(*files))
