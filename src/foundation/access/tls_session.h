// TlsSession: one end of a TLS connection as a state machine over bytes. It knows no
// sockets: their owner passes what arrives to receive(), and unsent() to the peer.
//
//   peer's bytes -> receive() -> read()
//   write()      -> unsent(), sent() -> peer's bytes
//
// Both ends show a certificate that the same authority signed. No more is required: the
// holder of one is accepted at any address. TLS 1.3, without resumption, so that every
// connection is checked anew.
//
// Threading: a session belongs to one thread; a context may be shared by many.
#ifndef FOLIOT_FOUNDATION_ACCESS_TLS_SESSION_H_
#define FOLIOT_FOUNDATION_ACCESS_TLS_SESSION_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "foundation/access/tls.h"
#include "foundation/base/status.h"

struct ssl_ctx_st;
struct ssl_st;

namespace foliot {

// The configuration that sessions are made from.
class TlsContext {
 public:
  // REQUIRES: there is an authority of the peers. Errors: kInvalidArgument.
  static Result<std::shared_ptr<const TlsContext>> make(const TlsIdentity& identity);

 private:
  friend class TlsSession;
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}
  const std::shared_ptr<ssl_ctx_st> context_;
};

enum class TlsEnd { kCaller, kCalled };

class TlsSession {
 public:
  // The caller sends first: unsent() then has something.
  TlsSession(const TlsContext& context, TlsEnd end);

  // The peer's certificate has been accepted; now write() may be called.
  bool established() const;

  // Bytes from the peer. Errors, after which unsent() may still have an alert for the
  // peer: kUnavailable with the side at fault.
  Status receive(std::span<const std::byte> bytes);
  // Moves decrypted bytes to `to`; 0: there are no more now. Errors as above.
  Result<size_t> read(std::span<std::byte> to);

  // REQUIRES: established().
  Status write(std::span<const std::byte> bytes);
  std::span<const std::byte> unsent() const { return std::span(unsent_).subspan(sent_); }
  void sent(size_t bytes);

 private:
  struct Free {
    void operator()(ssl_st* session) const;
  };

  Status shake_hands();
  Status failed(int result);
  void take_unsent();

  const std::unique_ptr<ssl_st, Free> session_;
  std::vector<std::byte> unsent_;
  size_t sent_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_ACCESS_TLS_SESSION_H_
