"""Lists the layers of Keras whose output is their input at inference, without loading Keras."""

from __future__ import annotations

_REGULARISING = "ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise Identity"
# `RandomCrop` is not among them: it crops at inference, too.
_AUGMENTING = (
    "AugMix CutMix MixUp RandAugment RandomBrightness RandomColorDegeneration RandomColorJitter RandomContrast "
    "RandomElasticTransform RandomErasing RandomFlip RandomGaussianBlur RandomGrayscale RandomHue RandomInvert "
    "RandomPerspective RandomPosterization RandomRotation RandomSaturation RandomSharpness RandomShear "
    "RandomTranslation RandomZoom Solarization"
)
IDENTITIES = frozenset(
    (*_REGULARISING.split(), *_AUGMENTING.split(), "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D")
)
