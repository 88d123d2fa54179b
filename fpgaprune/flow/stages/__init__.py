"""The stages of the flow: each reads artefacts, calls one stage package, and writes artefacts.

A stage is a function of its artefacts, its section of the configuration and the data; what it returns
is JSON data for the manifest. TensorFlow is loaded only by the stages that need it, when they run.
"""
