// The ports: the interfaces through which data flows from one part into the next. Each
// is implemented by the part that comes next, or by a link or a loop between the two.
//
//   front end -> RequestSink -> controller -> ActionSink -> worker
//             <- CompletionSink <-         <- OutcomeSink <-
//
// None of them may block, and none calls back into its caller.
#ifndef FOLIOT_FOUNDATION_CORE_PORTS_H_
#define FOLIOT_FOUNDATION_CORE_PORTS_H_

#include "foundation/core/action.h"
#include "foundation/core/request.h"

namespace foliot {

class RequestSink {
 public:
  virtual ~RequestSink() = default;
  // Exactly one Completion follows for every submitted request.
  virtual void submit(const Request& request) = 0;
  // A queued request is refused for this reason: kCancelled (the client went away) or
  // kOverload (another request takes its place). One that is already with a worker runs
  // on.
  // Unknown or completed ids are ignored.
  virtual void cancel(RequestId request, Refusal reason) = 0;
};

class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void complete(const Completion& completion) = 0;
};

class ActionSink {
 public:
  virtual ~ActionSink() = default;
  virtual void send(const Action& action) = 0;
};

class OutcomeSink {
 public:
  virtual ~OutcomeSink() = default;
  virtual void report(const Outcome& outcome) = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_CORE_PORTS_H_
