"""Check classifiers of other kinds around a run: what sees an error that confidence cannot."""

from calida.panel.agreement import beyond_chance, mean_agreement, share_equal
from calida.panel.members import MEMBERS, Member
from calida.panel.outliers import contested_share, outside_share
from calida.panel.panel import Opinion, Panel, PanelRows, fit_panel

__all__ = [
    "MEMBERS",
    "Member",
    "Opinion",
    "Panel",
    "PanelRows",
    "beyond_chance",
    "contested_share",
    "fit_panel",
    "mean_agreement",
    "outside_share",
    "share_equal",
]
