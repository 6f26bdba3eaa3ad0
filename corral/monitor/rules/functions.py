"""The supported functions of PromQL, and those of Prometheus that are refused by name."""

from __future__ import annotations

from typing import Final, NamedTuple

from corral.monitor.rules.syntax import Type


class Signature(NamedTuple):
    """The types that a function takes and gives."""

    arguments: tuple[Type, ...]
    result: Type = Type.VECTOR


OVER_RANGE: Final = (
    "rate", "irate", "increase", "delta", "idelta", "changes", "resets", "avg_over_time", "max_over_time",
    "min_over_time", "sum_over_time", "count_over_time", "last_over_time",
)  # fmt: skip
"""Functions that make one value of each series' points within a range."""

FUNCTIONS: Final = {
    **{name: Signature((Type.RANGE,)) for name in OVER_RANGE},
    **{name: Signature((Type.VECTOR,)) for name in ("abs", "ceil", "floor", "absent")},
    "histogram_quantile": Signature((Type.SCALAR, Type.VECTOR)),
    "vector": Signature((Type.SCALAR,)),
    "scalar": Signature((Type.VECTOR,), Type.SCALAR),
    "time": Signature((), Type.SCALAR),
}
AGGREGATIONS: Final = ("sum", "avg", "min", "max", "count")

UNSUPPORTED: Final = frozenset(
    (
        "absent_over_time", "acos", "acosh", "asin", "asinh", "atan", "atanh", "clamp", "clamp_max", "clamp_min", "cos",
        "cosh", "day_of_month", "day_of_week", "day_of_year", "days_in_month", "deg", "deriv",
        "double_exponential_smoothing", "exp", "histogram_avg", "histogram_count", "histogram_fraction",
        "histogram_stddev", "histogram_stdvar", "histogram_sum", "holt_winters", "hour", "info", "label_join",
        "label_replace", "ln", "log10", "log2", "mad_over_time", "minute", "month", "pi", "predict_linear",
        "present_over_time", "quantile_over_time", "rad", "round", "sgn", "sin", "sinh", "sort", "sort_by_label",
        "sort_by_label_desc", "sort_desc", "sqrt", "stddev_over_time", "stdvar_over_time", "tan", "tanh", "timestamp",
        "year", "bottomk", "count_values", "group", "limit_ratio", "limitk", "quantile", "stddev", "stdvar", "topk",
    )
)  # fmt: skip
"""Functions and aggregations that Prometheus has, and this evaluator has not."""
