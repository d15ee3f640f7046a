"""What a configuration asks for, built: mesh, model, initial density, flow and what to record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tokensphere.config import building
from tokensphere.config.tables import Config
from tokensphere.meshes.labels import Labels
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.march import Flow
from tokensphere.recording import Recorders

if TYPE_CHECKING:
    from tokensphere.pde.kernels import Kernel

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """A problem ready to march.

    model: the attention head, or the kernel of a joint law over `labels`. density: (cells,) or (labels, cells).
    """

    mesh: Mesh
    model: "Attention | Kernel"
    labels: Labels | None
    density: Array
    flow: Flow
    recorders: Recorders

    @property
    def attention(self) -> Attention | None:
        """The attention head, None for a joint law."""
        return self.model if isinstance(self.model, Attention) else None


def build_task(config: Config) -> Task:
    """Everything that a run needs, or an InputError; nothing is written yet."""
    mesh = building.build_mesh(config.mesh)
    return _joint_task(config, mesh) if config.joint else _attention_task(config, mesh)


def _attention_task(config: Config, mesh: Mesh) -> Task:
    from tokensphere.pde.problem import AttentionFlow
    from tokensphere.recording import attention_recorders

    if config.attention is None:
        raise AssertionError("a configuration without a kernel has an attention")
    attention = building.build_attention(config.attention, config.dimension)
    density = building.build_initial(config.initial, mesh)
    flow = AttentionFlow(mesh, attention, method=config.solver.method, rtol=config.solver.rtol)
    recorders = attention_recorders(mesh, attention, density, config.solver.metric)
    return Task(mesh, attention, None, density, flow, recorders)


def _joint_task(config: Config, mesh: Mesh) -> Task:
    from tokensphere.solving_joint import joint_flow, joint_recorders

    if config.labels is None or config.kernel is None:
        raise AssertionError("a joint configuration has labels and a kernel")
    labels = building.build_labels(config.labels)
    kernel = building.build_kernel(config.kernel, config.dimension)
    density = building.build_joint_initial(config.initial, mesh, labels)
    flow = joint_flow(mesh, labels, kernel, method=config.solver.method)
    return Task(mesh, kernel, labels, density, flow, joint_recorders(flow, labels, None))
