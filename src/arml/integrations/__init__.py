"""What frameworks need around a Reweighter. Each file imports its framework, and nothing here is imported by arml.

- ``lightning``: a callback for ``lightning.pytorch.Trainer``
- ``transformers``: a callback for ``transformers.Trainer``

Accelerate needs no file: ``accelerator.register_for_checkpointing(reweighter, recorder, sampler)`` is all.
"""
