#include "virtual/simulation/kind_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace foliot {

Result<std::vector<KindPart>> split_by_kind(const SimulationOptions& options, const Workload& workload) {
  if (!options.targets.empty()) return Status::invalid_argument("targets hold for the devices of all kinds together");
  std::map<std::string, std::string> kind_of;  // by group
  for (const ModelGroup& group : workload.groups) {
    if (group.runs_on.size() != 1) {
      return Status::invalid_argument(fmt::format("models '{}' do not run on one kind of device", group.name));
    }
    kind_of[group.name] = group.runs_on.front().kind;
  }
  std::map<std::string, std::string> kind_of_stream;
  for (const Stream& stream : workload.streams) {
    std::set<std::string> kinds;
    for (const auto& [group, kind] : kind_of) {
      if (stream.models.empty() || std::ranges::count(stream.models, group) > 0) kinds.insert(kind);
    }
    if (kinds.size() != 1) {
      return Status::invalid_argument(fmt::format("stream '{}' asks models of several kinds", stream.name));
    }
    kind_of_stream[stream.name] = *kinds.begin();
  }
  std::vector<KindPart> parts;
  for (const SimulatedKind& kind : options.kinds) {
    KindPart part{options, {}};
    part.options.kinds = {kind};
    part.options.devices = kind.devices;
    std::ranges::copy_if(workload.groups, std::back_inserter(part.workload.groups),
                         [&](const ModelGroup& group) { return kind_of.at(group.name) == kind.name; });
    for (uint32_t i = 0; i < workload.streams.size(); ++i) {
      if (kind_of_stream.at(workload.streams[i].name) != kind.name) continue;
      part.workload.streams.push_back(workload.streams[i]);
      part.workload.streams.back().position = i;
    }
    if (!part.workload.streams.empty()) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace foliot
