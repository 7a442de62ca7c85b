"""Policies: decide, update, and a posterior where they have one."""

from pfnts.explain.explanation import Explanation
from pfnts.layouts.memory import Memory
from pfnts.policies.context_free import ContextFreeTS
from pfnts.policies.decision import Choices, Decision
from pfnts.policies.epsilon_greedy import EpsilonGreedy
from pfnts.policies.lin_ts import LinTS
from pfnts.policies.lin_ucb import LinUCB
from pfnts.policies.lin_ucb_features import LinUCBFeatures
from pfnts.policies.model import Model, Shape, Values
from pfnts.policies.pfn_ts import PFNTS
from pfnts.policies.policy import Policy
from pfnts.policies.registry import make, names
from pfnts.policies.rewards import Rewards
from pfnts.policies.sequence_means import SequenceMeans
from pfnts.policies.traffic import Traffic
from pfnts.policies.uniform import Uniform

__all__ = [
    "PFNTS",
    "Choices",
    "ContextFreeTS",
    "Decision",
    "EpsilonGreedy",
    "Explanation",
    "LinTS",
    "LinUCB",
    "LinUCBFeatures",
    "Memory",
    "Model",
    "Policy",
    "Rewards",
    "SequenceMeans",
    "Shape",
    "Traffic",
    "Uniform",
    "Values",
    "make",
    "names",
]
