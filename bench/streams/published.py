"""What the paper tells: tables 1, 2 and 3."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """A line of a table: CPU seconds, and rule applications in all 50 updates, without marking (old) and with it (new)."""

    seconds_old: float
    seconds_new: float
    deletions_old: int
    deletions_new: int
    backward_old: int
    backward_new: int
    forward_old: int
    forward_new: int
    insertions: int
    explicit: int
    implicit: int

    @property
    def old(self) -> dict[str, int]:
        """Applications without marking."""
        return dict(
            zip(PHASES, (self.deletions_old, self.backward_old, self.forward_old, self.insertions), strict=True)
        )

    @property
    def new(self) -> dict[str, int]:
        """Applications with marking."""
        return dict(
            zip(PHASES, (self.deletions_new, self.backward_new, self.forward_new, self.insertions), strict=True)
        )


PHASES = ("deletions", "backward", "forward", "insertions")

TRANS = {
    10: Published(42.48, 39.17, 1_603, 447, 11_253, 14_447, 18_777, 19_001, 545, 480, 991),
    20: Published(38.55, 35.68, 3_046, 594, 10_468, 13_199, 15_373, 15_516, 2_912, 960, 2_277),
    30: Published(38.64, 35.57, 5_146, 1_100, 10_206, 11_856, 11_154, 11_224, 7_288, 1_399, 4_153),
    40: Published(41.35, 40.17, 4_755, 682, 10_834, 13_036, 12_560, 12_612, 6_575, 1_816, 4_069),
    50: Published(43.60, 45.09, 3_778, 360, 11_514, 14_441, 15_060, 15_096, 4_570, 2_215, 3_660),
    60: Published(45.78, 48.51, 3_227, 213, 11_842, 15_254, 16_518, 16_547, 3_327, 2_604, 3_428),
    70: Published(48.34, 52.76, 2_724, 161, 11_919, 16_054, 17_780, 17_796, 2_158, 2_973, 3_085),
    80: Published(50.04, 55.76, 2_584, 126, 11_863, 16_323, 18_169, 18_183, 1_782, 3_293, 3_078),
}

SEQ = {
    10: Published(10.32, 8.73, 1_960, 1_480, 0, 0, 0, 0, 2_360, 480, 480),
    20: Published(18.69, 15.68, 3_920, 2_960, 0, 0, 0, 0, 4_317, 960, 960),
    30: Published(28.59, 23.33, 5_880, 4_440, 0, 0, 0, 0, 6_265, 1_440, 1_440),
    40: Published(43.14, 34.60, 7_827, 5_910, 0, 0, 0, 0, 8_228, 1_917, 1_917),
    50: Published(64.62, 52.67, 9_709, 7_332, 0, 0, 0, 0, 10_173, 2_377, 2_377),
    60: Published(107.12, 85.82, 11_588, 8_744, 0, 0, 0, 0, 12_129, 2_844, 2_844),
    70: Published(152.29, 120.46, 13_457, 10_147, 0, 0, 0, 0, 14_069, 3_311, 3_311),
    80: Published(220.44, 177.29, 15_283, 11_516, 0, 0, 0, 0, 16_005, 3_767, 3_767),
}

#: by the number of updates
MAP = {
    55: Published(114.58, 106.22, 859, 754, 4_329, 4_400, 3_299, 3_299, 4_638, 910, 70),
    83: Published(20.57, 20.29, 684, 544, 2_697, 2_733, 2_317, 2_317, 2_653, 1_208, 119),
    114: Published(10.46, 10.24, 558, 400, 1_484, 1_479, 1_206, 1_206, 1_704, 1_017, 137),
}
