// CallLabel: what logs and traces keep of a call beside its requests: the id that its client gave it, how an
// application chose its model, and its place in a trace. No decision depends on it, so it travels beside a Request and
// not in it: calls without one pay nothing.
#ifndef FOLIOT_FOUNDATION_CORE_CALL_LABEL_H_
#define FOLIOT_FOUNDATION_CORE_CALL_LABEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "foundation/core/ids.h"
#include "foundation/core/ports.h"
#include "foundation/core/request.h"
#include "foundation/core/trace_context.h"

namespace foliot {

inline constexpr size_t kCallLabelBytesMax = 64;
inline constexpr size_t kSelectionTextBytesMax = 512;

struct CallLabel {
  std::string text;    // what is kept of the id; any bytes
  uint32_t bytes = 0;  // of the whole id; 0: the client gave none
  // Of a call that an application made: which of its models it asks, and why, for people. Not on
  // the wire.
  std::string selection{};
  TraceContext trace{};  // its span is the call's; none: the call is not traced

  bool cut() const { return bytes > text.size(); }
  // Whether there is more than what stays where the call was made.
  bool travels() const { return !text.empty() || trace; }
  bool operator==(const CallLabel&) const = default;
};

// Keeps at most kCallLabelBytesMax bytes of `id`, and no part of a character (UTF-8); of
// `selection` at most kSelectionTextBytesMax.
CallLabel call_label(std::string_view id, std::string_view selection = {});

// A RequestSink that takes labels, too. The requests of one call share theirs.
class LabelledRequestSink : public RequestSink {
 public:
  // submit(). `label` null: there is none.
  virtual void submit_labelled(const Request& request, std::shared_ptr<const CallLabel> label) = 0;
};

// Takes the label of a request, just before the request itself is observed.
//
// Threading: as an Observer.
class CallLabelSink {
 public:
  virtual ~CallLabelSink() = default;
  virtual void on_label(RequestId request, std::shared_ptr<const CallLabel> label) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_CALL_LABEL_H_
