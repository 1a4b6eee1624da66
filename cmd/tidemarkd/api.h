/// What the HTTP doors answer: numbers, states and the few commands that change something. Reads the rooms below at the
/// moment of the request; keeps nothing.
///
/// http.listener: GET only.
///   /                        this list
///   /metrics                 Prometheus
///   /healthz                 200 while the event loops are alive
///   /readyz                  200 while clients are served and no log directory is offline
///   /api/v1/broker           who this is
///   /api/v1/topics           names, ids, settings
///   /api/v1/topics/NAME      partitions with their offsets and sizes
///   /api/v1/cleaner          what is cleaned next, and why
///   /api/v1/retention        what is deleted next, and what was; ?topic=NAME one topic's; ?segments=yes when the rest goes;
///                            ?set.KEY=VALUE what another setting of the topics or the broker would do
///
/// admin.socket:
///   GET  /v1/status
///   POST /v1/clean?topic=T&partition=P   clean at the next round, whatever the dirty ratio; &roll=yes: the active segment, too
///   GET  /v1/clean?topic=T&partition=P   how far that is
///   POST /v1/retention                   run retention now
///   POST /v1/repair?topic=T&partition=P&how=restore|drop   decide what becomes of a damaged log (D21)
///   POST /v1/clock/confirm               the wall clock is right (D23)
#pragma once

#include <functional>
#include <memory>

#include "cleaner/cleaner_pool.h"
#include "daemon/server.h"
#include "http/router.h"
#include "metadata/controller.h"
#include "metadata/effective_config.h"
#include "metrics/exposition.h"
#include "retention/clock_trust.h"
#include "retention/scheduler.h"
#include "storage/log_manager.h"

namespace tidemark {

/// All of it outlives the routers.
struct ApiParts {
    const Clock& clock;
    storage::LogManager& logs;
    const metadata::Controller& controller;
    cleaner::CleanerPool& cleaner;
    retention::Scheduler& retention;
    retention::ClockTrust& clock_trust;
    const daemon::Server& server;
    const metrics::Exposition& exposition;
    std::function<bool()> loops_alive;
    std::function<metadata::ConfigLayers()> layers;      ///< the broker's settings as they are now
};

http::Router reading_router(const ApiParts&);
/// While logs are loaded: /metrics of process and directories, /healthz, and a /readyz that says how many are left.
http::Router loading_router(const storage::LogManager&);
http::Router admin_router(const ApiParts&);

}  // namespace tidemark
