"""A network while it is adapted: what it learns from, what has been decided by now, and the forecaster of both."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from rdjepa.adaptation import retention
from rdjepa.adaptation.adapt import Windows, standardized
from rdjepa.adaptation.decision import ENOUGH, Decision, settle
from rdjepa.adaptation.forecaster import Forecaster
from rdjepa.adaptation.novelty import described, embed, familiar, last_contexts, summarize
from rdjepa.api.support import Support
from rdjepa.data.statistics import Normalizer
from rdjepa.data.windows import FORECASTING
from rdjepa.forecasters.base import ForecastModel
from rdjepa.forecasters.equation import Equation, Remembering
from rdjepa.forecasters.familiar import Familiar


@dataclass
class Learner:
    """What `rdjepa.adapt` makes a forecaster of; the network's weights and the decision change on the way.

    Attributes:
        network: that is trained, on the device of the data.
        support: what it is adapted to, and what else decides and calibrates.
        statistics: of the fields.
        data: the windows of the support, without its images.
        decision: what has been decided by now.
        memory: the equation of the decision's combination, remembering its fits; None where no context is forecast
            twice.
    """

    network: ForecastModel
    support: Support
    statistics: Normalizer
    data: Windows
    decision: Decision
    memory: Remembering | None = None

    @property
    def whole(self) -> ForecastModel:
        """The forecaster of whole fields, not combined with anything."""
        return self.support.whole(self.network)

    def standard(self, fields: Sequence[np.ndarray]) -> list[Tensor]:
        """Return trajectories (T, H, W, C) in physical units as the network sees them, (T, C, H, W) each."""
        return standardized(fields, self.statistics, self.data.targets.device)

    def forecaster(self, *, remembering: bool = False) -> Forecaster:
        """Return what the decision makes of the network: a forecaster of whole fields in physical units."""
        memory = self.memory if remembering else None
        return Forecaster(self.decision.around(self.whole, memory, self._familiar_to_blend()), self.statistics)

    def choose_by_last(self, updates: int) -> None:
        """Leave the network alone if it forecasts the last trajectory, which it has not seen yet, better so."""
        known = self._familiar_to_blend(without=1)
        *seen, unseen = self.standard(self.support.fields)
        equation = Equation.fit(seen, self.support.domain)
        decision = settle(self.decision, self.whole, [unseen], equation, familiar=known, most=ENOUGH)
        self.decision = replace(decision, told={**decision.told, "withheld": updates})

    def choose_by_others(self) -> None:
        """Leave the network alone if it forecasts the trajectories to calibrate on better so."""
        unseen = self.standard(self.support.others)
        self.decision = settle(self.decision, self.whole, unseen, self.memory, self._familiar_to_blend())

    def familiar(self) -> Familiar | None:
        """Return what tells how new a context is; None without a pretrained encoder.

        And where there is one window alone, which does not tell how far its like lie.
        """
        support, whole = self.support, self.whole
        rows = self._described()
        if rows is None or (len(rows) == 1 and not support.others):
            return None
        alike = described(whole, support.others, self.statistics) if support.others else None
        ends = embed(whole, np.concatenate([last_contexts(fields) for fields in support.fields]), self.statistics)
        return familiar(rows, _counts(support.fields), alike, ends)

    def _familiar_to_blend(self, without: int = 0) -> Familiar | None:
        """Return the support, without so many of its last trajectories, as the blend goes by it; None for others."""
        rows = self._described() if self.decision.blends else None
        if rows is None:
            return None
        counts = _counts(self.support.fields[: len(self.support.fields) - without])
        seen = replace(self.data, own=self.data.own * sum(counts) // len(rows))
        missed = retention.relative_error(self.network.eval(), seen, ENOUGH) ** 2
        return replace(familiar(rows[: sum(counts)], counts), missed=missed)

    def _described(self) -> np.ndarray | None:
        """Return the rows (n, d) of the windows of whole fields; None without a pretrained encoder."""
        if self.support.tiled:
            return described(self.whole, self.support.fields, self.statistics)
        return summarize(self.network, self.data)


def _counts(trajectories: Sequence[np.ndarray]) -> list[int]:
    return [FORECASTING.count(len(fields)) for fields in trajectories]
