// Perfetto export: a log in the Chrome trace event format, which Perfetto
// (ui.perfetto.dev) and chrome://tracing show.
//
// One process per device with a track per executor (LOAD, INPUT, EXEC, OUTPUT) and
// a counter of pages in use; one process for requests, on as many tracks as
// were in flight at a time, with a counter of those that were queued. An arrow
// leads from each request to the EXEC that answered it.
//
// A worker reports how long INPUT and OUTPUT took and when OUTPUT ended, not when
// INPUT began: INPUT is drawn as soon as its action was sent and the INPUT before
// it had ended.
#ifndef FOLIOT_OBSERVE_REQUEST_LOG_PERFETTO_H_
#define FOLIOT_OBSERVE_REQUEST_LOG_PERFETTO_H_

#include <ostream>

#include "observe/request_log/log.h"

namespace foliot {

void write_perfetto(const Log& log, std::ostream& out);

}  // namespace foliot

#endif  // FOLIOT_OBSERVE_REQUEST_LOG_PERFETTO_H_
