/// Retention: what went, by which rule, what holds it up, and whether the clock is believed.
#pragma once

#include "metrics/families.h"
#include "metrics/storage_metrics.h"
#include "retention/clock_trust.h"
#include "retention/scheduler.h"

namespace tidemark::metrics {

FamilyList families_of(const retention::SchedulerStats&, const Cardinality&);
FamilyList families_of(const retention::ClockTrust::Stats&);

}  // namespace tidemark::metrics
