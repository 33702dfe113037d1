// answer_fetch(): what holds payloads, a front end or a worker, answers a peer's FETCH
// with INPUTS.
//
// When the peer does not read: what it asked for waits until it does; more than
// kUnreadInputsBytesMax is a fault of the peer, and ends its connection.
#ifndef FOLIOT_CLUSTER_SESSIONS_ANSWER_FETCH_H_
#define FOLIOT_CLUSTER_SESSIONS_ANSWER_FETCH_H_

#include <cstddef>

#include "cluster/transport/codec.h"
#include "cluster/transport/connection.h"
#include "cluster/transport/message.h"
#include "foundation/base/status.h"

namespace foliot {

inline constexpr size_t kUnreadInputsBytesMax = size_t{256} << 20;

// What of these tensors is taken: all of them, or a part of each; empty: there are not so many.
inline TensorBytes take_parts(TensorBytes tensors, const std::vector<TensorPart>& taken) {
  if (taken.empty()) return tensors;
  if (taken.size() != tensors.size()) return {};
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = part_of(tensors[i], taken[i]);
  return tensors;
}

// `find(fetch)` returns the TensorBytes that it names, whole; empty: there are none, or they are
// not this peer's. Errors: kInvalidArgument; kResourceExhausted, if the peer does not read.
template <typename Find>
Status answer_fetch(const Frame& frame, Connection& connection, Find find) {
  Fetch fetch;
  FOLIOT_RETURN_IF_ERROR(decode(frame, fetch));
  if (connection.unsent_bytes() > kUnreadInputsBytesMax) return connection.check();
  connection.send(Inputs{fetch.action, fetch.request, take_parts(find(fetch), fetch.taken), fetch.source});
  return Status();
}

}  // namespace foliot

#endif  // FOLIOT_CLUSTER_SESSIONS_ANSWER_FETCH_H_
