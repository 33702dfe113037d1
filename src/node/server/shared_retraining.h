// SharedRetraining: the other front ends of a cluster, over their links, for the one that retrains personal models.
//
// Threading: as RetrainPeers; what it asks is sent by the loop's thread.
#ifndef FOLIOT_NODE_SERVER_SHARED_RETRAINING_H_
#define FOLIOT_NODE_SERVER_SHARED_RETRAINING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cluster/sessions/home_links.h"
#include "cluster/sessions/user_shards.h"
#include "cluster/transport/wire.h"
#include "foundation/base/status.h"
#include "models/training/retrain_peers.h"

namespace foliot {

class SharedRetraining : public RetrainPeers {
 public:
  // Both outlive it, and the loop runs while it is asked.
  SharedRetraining(HomeLinks& links, UserShards& shards) : links_(links), shards_(shards) {}

  std::optional<std::vector<std::string>> led() override;
  Result<Facts> facts(const std::string& peer, const std::string& model) override;
  Result<Copies> copies(const std::string& peer, const std::string& model, uint64_t pass) override;

 private:
  Result<ShardStore::Exported> ask(const std::string& peer, HomeCallKind kind, const std::string& model, uint64_t pass);

  HomeLinks& links_;
  UserShards& shards_;
};

// As they travel between front ends.
WireBytes encode(const RetrainPeers::Facts& facts);
WireBytes encode(const std::vector<std::vector<std::byte>>& copies);
// nullopt: they are of another form.
std::optional<RetrainPeers::Facts> decode_retrain_facts(std::span<const std::byte> bytes);
std::optional<std::vector<std::vector<std::byte>>> decode_copies(std::span<const std::byte> bytes);

}  // namespace foliot

#endif  // FOLIOT_NODE_SERVER_SHARED_RETRAINING_H_
