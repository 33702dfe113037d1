// DecodeQueue: work of unknown length, by the source that it is for. The source that took least time comes first, so
// that one which sends what takes long to decode delays itself alone.
//
// A source that had nothing to do gains nothing by that: it begins with the time that each source with work has had
// (virtual time of fair queueing). Sources without work are forgotten once they have no debt.
//
// Limit: what the caller adds; of an HTTP server, one piece for each connection.
// Threading: none. The caller measures the time.
#ifndef FOLIOT_EDGE_HTTP_DECODE_QUEUE_H_
#define FOLIOT_EDGE_HTTP_DECODE_QUEUE_H_

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "foundation/base/time.h"

namespace foliot {

class DecodeQueue {
 public:
  using Work = std::function<void()>;
  struct Piece {
    std::string source;
    Work work;
  };

  void add(const std::string& source, Work work);
  // nullopt: there is none.
  std::optional<Piece> take();
  // What the piece that was taken last took, whatever came of it.
  void charge(const std::string& source, Duration spent);

  size_t sources() const { return sources_.size(); }

 private:
  struct Source {
    Duration used;
    std::deque<Work> waiting;
  };

  std::map<std::string, Source> sources_;
  Duration now_;  // virtual time: what each source with work has had since the first
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_HTTP_DECODE_QUEUE_H_
