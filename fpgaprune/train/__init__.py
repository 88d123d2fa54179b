"""Exact locks in any optimizer, frozen variables and layers, and fine-tuning under a lock."""

from fpgaprune.train.finetune import finetune
from fpgaprune.train.freeze import freeze
from fpgaprune.train.frozen import Frozen
from fpgaprune.train.lock import lock, relock, unlock
from fpgaprune.train.locked_optimizer import LockedOptimizer

__all__ = ["Frozen", "LockedOptimizer", "finetune", "freeze", "lock", "relock", "unlock"]
