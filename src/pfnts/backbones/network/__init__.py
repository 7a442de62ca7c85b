"""The causal prior-data fitted network that ships with the package."""

from pfnts.backbones.network.backbone import EmbeddedBackbone

__all__ = ["EmbeddedBackbone"]
