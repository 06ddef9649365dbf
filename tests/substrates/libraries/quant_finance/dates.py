"""Programs of tf_quant_finance.datetime."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.substrates.libraries.programs import Program, adder
from tests.substrates.libraries.quant_finance.places import ONLY_EAGER, VALUES

PROGRAMS: list[Program] = []
program = adder(PROGRAMS, VALUES)


def _some_dates(tff: Any) -> Any:
    return tff.datetime.dates_from_tuples([(2019, 1, 25), (2020, 3, 2), (2020, 2, 29)])


@program("datetime.DateTensor")
def _(tf, tff):
    d = _some_dates(tff)
    other = tff.datetime.dates_from_tuples([(2020, 3, 5)])
    return [
        d.day(), d.month(), d.year(), d.ordinal(), d.day_of_week(), d.day_of_year(),
        d.to_tensor(), d.days_until(other), d.is_end_of_month(), d.to_end_of_month().ordinal(),
        (d + tff.datetime.periods.months([1, 2, 3])).ordinal(), d < other,
        d.period_length_in_days(tff.datetime.periods.month()),
    ]  # fmt: skip


for _of in (
    "daycount_actual_360",
    "daycount_actual_365_actual",
    "daycount_actual_365_fixed",
    "daycount_actual_actual_isda",
    "daycount_thirty_360_isda",
):

    @program(f"datetime.{_of}")
    def _(tf, tff, _of=_of):
        d = _some_dates(tff)
        end = d + tff.datetime.periods.months(17)
        return getattr(tff.datetime, _of)(start_date=d, end_date=end, dtype=tf.float64)


@program("datetime.PeriodicSchedule", places=ONLY_EAGER)
def _(tf, tff):
    d = tff.datetime
    return (
        d.PeriodicSchedule(
            start_date=d.dates_from_tuples([(2020, 1, 18)]),
            end_date=d.dates_from_tuples([(2021, 3, 25)]),
            tenor=d.periods.months(3),
            holiday_calendar=d.create_holiday_calendar(start_year=2020, end_year=2021),
            roll_convention=d.BusinessDayConvention.FOLLOWING,
        )
        .dates()
        .to_tensor()
    )


@program("datetime.BusinessDaySchedule", places=ONLY_EAGER)
def _(tf, tff):
    d = tff.datetime
    return (
        d.BusinessDaySchedule(
            start_date=d.dates_from_tuples([(2020, 3, 19)]),
            end_date=d.dates_from_tuples([(2020, 3, 25)]),
            holiday_calendar=d.create_holiday_calendar(start_year=2020, end_year=2021),
        )
        .dates()
        .to_tensor()
    )


@program("datetime.create_holiday_calendar")
def _(tf, tff):
    d = tff.datetime
    calendar = d.create_holiday_calendar(
        start_year=2018, end_year=2021, weekend_mask=d.WeekendMask.SATURDAY_SUNDAY
    )
    dates = _some_dates(tff)
    return [
        calendar.is_business_day(dates),
        calendar.roll_to_business_day(dates, d.BusinessDayConvention.FOLLOWING).ordinal(),
        calendar.add_business_days(
            dates, tf.constant([1, 5, 9]), d.BusinessDayConvention.FOLLOWING
        ).ordinal(),
        calendar.business_days_between(dates, dates + d.periods.months(1)),
    ]


@program("datetime.random_dates")
def _(tf, tff):
    d = tff.datetime
    start = d.dates_from_tuples([(2020, 5, 16), (2020, 6, 13)])
    return d.random_dates(
        start_date=start, end_date=d.dates_from_tuples([(2021, 5, 21)]), size=3, seed=4
    ).ordinal()[:0]


@program("datetime.convert_to_date_tensor")
def _(tf, tff):
    d = tff.datetime
    year, month, day = (tf.constant(x) for x in ([2015, 2017], [4, 12], [15, 30]))
    return [
        d.convert_to_date_tensor([(2020, 1, 1)]).ordinal(),
        d.dates_from_year_month_day(year, month, day).ordinal(),
        d.dates_from_ordinals(tf.constant([735703, 736693])).to_tensor(),
        d.dates_from_tensor(tf.constant([[2015, 4, 15], [2017, 12, 30]])).ordinal(),
        d.dates_from_np_datetimes(np.array(["2019-03-25", "2020-06-02"], "M8[D]")).ordinal(),
    ]
