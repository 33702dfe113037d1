#include "cluster/sessions/batch_inputs.h"

#include <algorithm>
#include <utility>

namespace foliot {
namespace {

// One source for all inputs.
std::vector<InputSource> sources_of(const BatchRows::Row& row) {
  return {{.holder = row.input.holder, .payload = row.input ? row.input.handle : row.payload}};
}

// One source for each visit, and one for the call.
std::vector<InputSource> sources_of(const VisitOrder& order, PayloadHandle payload) {
  std::vector<InputSource> sources;
  for (uint32_t input = 0; input < order.inputs.size(); ++input) {
    const VisitOrder::Input& wanted = order.inputs[input];
    for (uint32_t i = 0; i < wanted.pieces.size(); ++i) {
      const auto& [slot, holder] = wanted.pieces[i];
      auto source = std::ranges::find(sources, slot, &InputSource::slot);
      if (source == sources.end()) {
        source = sources.insert(source,
                                slot ? InputSource{.holder = holder, .slot = slot} : InputSource{.payload = payload});
      }
      source->inputs.push_back(input);
      source->places.push_back({i, wanted.pieces_most});
      source->tensors.push_back(wanted.tensor);
      source->taken.push_back(wanted.taken);
    }
  }
  return sources;
}

}  // namespace

BatchInputs::BatchInputs(const BatchRows& rows, const std::map<uint32_t, VisitOrder>& visits) : sources_(rows.size()) {
  for (uint32_t row = 0; row < rows.size(); ++row) {
    const auto visit = visits.find(row);
    sources_[row] = visit == visits.end() ? sources_of(rows[row]) : sources_of(visit->second, rows[row].payload);
    waiting_.set(row, !sources_[row].empty());
  }
}

const InputSource* BatchInputs::find(uint32_t row, uint32_t number) const {
  const auto source = std::ranges::find(sources_[row], number, &InputSource::number);
  return source == sources_[row].end() ? nullptr : &*source;
}

void BatchInputs::receive(uint32_t row, uint32_t number) {
  std::erase_if(sources_[row], [number](const InputSource& source) { return source.number() == number; });
  if (sources_[row].empty()) waiting_.reset(row);
}

void BatchInputs::drop(uint32_t row) {
  end_wait(row);
  dropped_.set(row);
}

void BatchInputs::starve(uint32_t row, std::string reason) {
  end_wait(row);
  starved_.emplace(row, std::move(reason));
}

const std::string* BatchInputs::starved(uint32_t row) const {
  const auto reason = starved_.find(row);
  return reason == starved_.end() ? nullptr : &reason->second;
}

void BatchInputs::end_wait(uint32_t row) {
  waiting_.reset(row);
  sources_[row].clear();
}

}  // namespace foliot
