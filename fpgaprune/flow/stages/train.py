"""The stage `train`: the network that everything else starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fpgaprune.flow.context import Context
from fpgaprune.flow.network import small_cnn
from fpgaprune.flow.progress import epochs_shown
from fpgaprune.flow.samples import arrays_of, predict
from fpgaprune.keras_file import save_keras
from fpgaprune.npz_file import write_npz
from fpgaprune.weights import weight_arrays


def train(context: Context) -> dict[str, Any]:
    """`trained.keras` is the trained network; its metric on held-out samples is known.

    `early.npz` holds its weights after the epoch that a schedule goes back to, where there is one.
    """
    from fpgaprune.flow.checkpoint import Resume
    from fpgaprune.flow.epochs import shuffled_batches, steps_in_epoch
    from fpgaprune.flow.models import read_model
    from fpgaprune.flow.task import TRAIN_RATE

    settings, data = context.config.train, context.data
    imported, checkpoint = None, context.checkpoint("train")
    if settings.model is not None:
        context.run.file("early.npz").unlink(missing_ok=True)
        model, imported = read_model(settings.model)
    else:
        model = small_cnn(arrays_of(data.x_train)[0].shape[1:], data.classes or 0)
        steps = steps_in_epoch(data.x_train, settings.batch_size)
        context.task(model).compile(model, settings.learning_rate, TRAIN_RATE, settings.epochs * steps)
        # Its state can be taken up only once it has one.
        model.optimizer.build(model.trainable_variables)
        start = checkpoint.load()
        done = 0 if start is None else start.epoch
        early = context.config.finetune.rewind_epoch
        if start is None:
            context.run.file("early.npz").unlink(missing_ok=True)
        if early == 0 and start is None:
            _save_early(context, model)
        model.fit(
            shuffled_batches(data.x_train, data.y_train, settings.batch_size, context.config.seed, done),
            epochs=settings.epochs,
            initial_epoch=done,
            steps_per_epoch=steps,
            callbacks=[
                epochs_shown(context.progress, settings.epochs),
                _after_epoch(early, lambda: _save_early(context, model)),
                Resume(checkpoint, start),
            ],
            shuffle=False,
            verbose=0,
        )
    save_keras(model, context.run.file("trained.keras"))
    checkpoint.remove()
    outputs = predict(model, data.x_test)
    # What later networks are compared with: predicting again would take longer than reading.
    write_npz(context.run.file("trained_outputs.npz"), {f"{n:03}": a for n, a in enumerate(arrays_of(outputs))})
    found: dict[str, Any] = {"metric": context.judge(model).reading(outputs)}
    return found if imported is None else {**found, "imported": imported}


def _after_epoch(number: int | None, act: Callable[[], None]) -> Any:
    """A Keras callback that acts once `number` epochs are done; never where it is None."""
    import keras

    return keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, _: act() if epoch + 1 == number else None)


def _save_early(context: Context, model: Any) -> None:
    write_npz(context.run.file("early.npz"), weight_arrays(model))
