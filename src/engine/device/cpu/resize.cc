// Resize: nearest and linear, in any number of dimensions, from tables made once.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/device/cpu/channel_layout.h"
#include "engine/device/cpu/families.h"
#include "engine/device/cpu/fusion.h"
#include "engine/device/cpu/parallel.h"

namespace foliot {
namespace {

// Where one position of the result reads along one dimension.
struct Tap {
  int64_t low = 0, high = 0;  // equal for nearest
  float high_weight = 0;
};

struct Rule {
  std::string coordinates, nearest;
  bool linear = false;
};

double source_position(const Rule& rule, int64_t position, double scale, int64_t from, int64_t to) {
  const auto x = static_cast<double>(position);
  // In float32, in which others divide: one rounding decides between two pixels.
  const auto divided = [&](double dividend) { return static_cast<float>(dividend) / static_cast<float>(scale); };
  const double resized = static_cast<double>(from) * scale;
  if (rule.coordinates == "align_corners")
    return resized == 1 ? 0.0 : x * static_cast<double>(from - 1) / (resized - 1);
  if (rule.coordinates == "asymmetric") return divided(x);
  if (rule.coordinates == "pytorch_half_pixel" && to == 1) return 0.0;
  return divided(x + 0.5) - 0.5F;
}

int64_t nearest_of(const std::string& rounding, double x) {
  if (rounding == "floor") return static_cast<int64_t>(std::floor(x));
  if (rounding == "ceil") return static_cast<int64_t>(std::ceil(x));
  if (rounding == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  return static_cast<int64_t>(std::ceil(x - 0.5));
}

std::vector<Tap> taps_of(const Rule& rule, double scale, int64_t from, int64_t to) {
  std::vector<Tap> taps(static_cast<size_t>(to));
  const auto inside = [from](int64_t i) { return std::clamp<int64_t>(i, 0, from - 1); };
  for (int64_t i = 0; i < to; ++i) {
    Tap& tap = taps[static_cast<size_t>(i)];
    const double x = from == to && scale == 1.0 ? static_cast<double>(i) : source_position(rule, i, scale, from, to);
    if (!rule.linear) {
      tap.low = tap.high = inside(nearest_of(rule.nearest, x));
      continue;
    }
    const double within = std::clamp(x, 0.0, static_cast<double>(from - 1));
    tap.low = inside(static_cast<int64_t>(std::floor(within)));
    tap.high = inside(tap.low + 1);
    tap.high_weight = static_cast<float>(within - static_cast<double>(tap.low));
  }
  return taps;
}

// Walks the result in the order in which it lies, one run of lanes (channels
// that lie together) after another.
class ResizeKernel : public Kernel {
 public:
  ResizeKernel(const OperatorView& view, const std::optional<ChannelLayout>& channels)
      : from_(view.input_index(0)), to_(view.output_index()) {
    const Shape& source = view.input(0).shape;
    const Shape& destination = view.output().shape;
    const Rule rule{view.attributes().text("coordinates"), view.attributes().text("nearest"),
                    view.attributes().text("mode") == "linear"};
    nearest_ = !rule.linear;
    Shape walked = source;  // the dimensions of the source in this order, groups for channels
    for (size_t d = 0; d < source.size(); ++d)
      taps_.push_back(taps_of(rule, view.attributes().reals("scales").at(d), source[d], destination[d]));
    if (channels) {
      lanes_ = channels->lanes;
      walked[1] = channels->groups;
      taps_[1] = taps_of(rule, 1, channels->groups, channels->groups);
    }
    walked.push_back(lanes_);
    strides_ = dense_strides(walked);
    leading_ = std::min<size_t>(destination.size(), 2);
    rows_ = static_cast<int64_t>(taps_[0].size() * (leading_ == 2 ? taps_[1].size() : 1));
    row_ = static_cast<int64_t>(element_count(destination)) / std::max<int64_t>(rows_, 1);
  }

  Status run(Addresses addresses) override {
    const float* from = reinterpret_cast<const float*>(addresses[from_]);
    float* to = reinterpret_cast<float*>(addresses[to_]);
    parallel_for(rows_, rows_ * row_ * 8, [&](int64_t row) {
      float* target = to + row * row_;
      const int64_t second = leading_ == 2 ? static_cast<int64_t>(taps_[1].size()) : 1;
      Corners corners{.count = 1, .offsets = {0}, .weights = {1.f}};
      corners = along(corners, 0, row / second);
      if (leading_ == 2) corners = along(corners, 1, row % second);
      fill(leading_, corners, from, target);
    });
    return Status();
  }

 private:
  // The source elements that make one element of the result: at most two for
  // each of the dimensions that are really resized.
  static constexpr size_t kCornersMax = 32;
  struct Corners {
    size_t count;
    int64_t offsets[kCornersMax];
    float weights[kCornersMax];
  };

  Corners along(const Corners& corners, size_t d, int64_t position) const {
    const Tap& tap = taps_[d][static_cast<size_t>(position)];
    const bool both = tap.high_weight > 0 && 2 * corners.count <= kCornersMax;
    Corners result{.count = corners.count * (both ? 2 : 1), .offsets = {}, .weights = {}};
    for (size_t i = 0; i < corners.count; ++i) {
      result.offsets[i] = corners.offsets[i] + tap.low * strides_[d];
      result.weights[i] = both ? corners.weights[i] * (1.f - tap.high_weight) : corners.weights[i];
      if (!both) continue;
      result.offsets[corners.count + i] = corners.offsets[i] + tap.high * strides_[d];
      result.weights[corners.count + i] = corners.weights[i] * tap.high_weight;
    }
    return result;
  }

  void fill(size_t d, const Corners& corners, const float* from, float*& to) const {
    if (d + 2 == taps_.size() && lanes_ == 1 && corners.count == 1)
      return nearest_ ? fill_plane_nearest(from + corners.offsets[0], to)
                      : fill_plane_linear(from + corners.offsets[0], to);
    if (d + 1 == taps_.size() && lanes_ == 1) return fill_line(corners, from, to);
    if (d == taps_.size()) {
      blend(corners, from, to);
      to += lanes_;
      return;
    }
    for (size_t i = 0; i < taps_[d].size(); ++i) fill(d + 1, along(corners, d, static_cast<int64_t>(i)), from, to);
  }

  // The last two dimensions, of one plane: lines that read the same one are copies of the first.
  void fill_plane_nearest(const float* from, float*& to) const {
    const std::vector<Tap>& lines = taps_[taps_.size() - 2];
    const auto width = static_cast<int64_t>(taps_.back().size());
    for (size_t i = 0; i < lines.size(); ++i, to += width) {
      if (i > 0 && lines[i].low == lines[i - 1].low) {
        std::copy_n(to - width, width, to);
        continue;
      }
      const float* line = from + lines[i].low * strides_[taps_.size() - 2];
      for (int64_t x = 0; x < width; ++x) to[x] = line[taps_.back()[static_cast<size_t>(x)].low];
    }
  }

  // Each line of the source is resized once, and those of the result are blended from two. In pieces, so that two
  // lines fit onto the stack.
  void fill_plane_linear(const float* from, float*& to) const {
    constexpr int64_t kPiece = 512;
    const std::vector<Tap>& lines = taps_[taps_.size() - 2];
    const auto width = static_cast<int64_t>(taps_.back().size());
    for (int64_t begin = 0; begin < width; begin += kPiece) {
      const int64_t count = std::min(kPiece, width - begin);
      std::array<float, kPiece> first, second;
      ResizedLine low{first.data()}, high{second.data()};
      float* target = to + begin;
      for (const Tap& tap : lines) {
        if (low.line != tap.low && high.line == tap.low) std::swap(low, high);
        resize_line(from, tap.low, begin, count, low);
        if (tap.high_weight > 0) {
          resize_line(from, tap.high, begin, count, high);
          const float weight = 1.F - tap.high_weight;
          for (int64_t x = 0; x < count; ++x) target[x] = weight * low.values[x] + tap.high_weight * high.values[x];
        } else {
          std::copy_n(low.values, count, target);
        }
        target += width;
      }
    }
    to += static_cast<int64_t>(lines.size()) * width;
  }

  struct ResizedLine {
    float* values;
    int64_t line = -1;  // of the source; -1: none yet
  };

  void resize_line(const float* from, int64_t line, int64_t begin, int64_t count, ResizedLine& resized) const {
    if (resized.line == line) return;
    resized.line = line;
    const float* source = from + line * strides_[taps_.size() - 2];
    for (int64_t x = 0; x < count; ++x)
      resized.values[x] = between(source, taps_.back()[static_cast<size_t>(begin + x)]);
  }

  // Along the last dimension, whose elements lie one after the other.
  void fill_line(const Corners& corners, const float* from, float*& to) const {
    const std::vector<Tap>& taps = taps_.back();
    for (size_t corner = 0; corner < corners.count; ++corner) {
      const float* line = from + corners.offsets[corner];
      const float weight = corners.weights[corner];
      if (nearest_ && corners.count == 1) {
        for (size_t i = 0; i < taps.size(); ++i) to[i] = line[taps[i].low];
      } else if (corner == 0) {
        for (size_t i = 0; i < taps.size(); ++i) to[i] = weight * between(line, taps[i]);
      } else {
        for (size_t i = 0; i < taps.size(); ++i) to[i] += weight * between(line, taps[i]);
      }
    }
    to += taps.size();
  }
  static float between(const float* line, const Tap& tap) {
    return line[tap.low] * (1.f - tap.high_weight) + line[tap.high] * tap.high_weight;
  }

  void blend(const Corners& corners, const float* from, float* to) const {
    const float* first = from + corners.offsets[0];
    if (corners.count == 1) {
      std::copy_n(first, lanes_, to);
      return;
    }
    for (int64_t lane = 0; lane < lanes_; ++lane) to[lane] = corners.weights[0] * first[lane];
    for (size_t i = 1; i < corners.count; ++i) {
      const float* next = from + corners.offsets[i];
      const float weight = corners.weights[i];
      for (int64_t lane = 0; lane < lanes_; ++lane) to[lane] += weight * next[lane];
    }
  }

  TensorIndex from_, to_;
  bool nearest_ = false;
  int64_t lanes_ = 1;
  Shape strides_;
  std::vector<std::vector<Tap>> taps_;  // by dimension, by position in the result
  int64_t rows_ = 1, row_ = 1;
  size_t leading_ = 1;
};

// Channels that are not resized stay as they lie, where the kernel knows how.
std::optional<ChannelLayout> kept_channels(const Descriptor& layout, const std::vector<double>& scales) {
  const std::optional<ChannelLayout> channels = channel_layout(layout);
  if (!channels || channels->kind == ChannelLayout::Kind::kDense || scales.at(1) != 1) return std::nullopt;
  return channels;
}

}  // namespace

Result<bool> lower_resize(const Node& node, GraphLowering& lowering) {
  FOLIOT_RETURN_IF_ERROR(require_float32(node, lowering));
  const ValueIndex source = node.inputs[0], destination = node.outputs[0];
  const Shape& shape = lowering.shape(source);
  if (shape.empty() || shape.size() > 5) return Status::unimplemented("resizes one to five dimensions");
  const auto channels = kept_channels(lowering.layout(source), node.attributes.reals("scales"));
  if (!channels) {
    FOLIOT_RETURN_IF_ERROR(lowering.emit_dense(node, "foliot:resize"));
    return true;
  }
  Operator operation = GraphLowering::begin(node, "foliot:resize");
  operation.inputs = {lowering.present(source)};
  operation.outputs = {
      lowering.result(destination, *with_channels(*channels, DataType::kFloat32, lowering.shape(destination)))};
  FOLIOT_RETURN_IF_ERROR(lowering.emit(std::move(operation)));
  return true;
}

Result<std::unique_ptr<Kernel>> make_resize(const OperatorView& view) {
  std::optional<ChannelLayout> channels;
  if (!view.input(0).layout.empty()) {
    channels = kept_channels(view.input_descriptor(0), view.attributes().reals("scales"));
    if (!channels || *with_channels(*channels, DataType::kFloat32, view.output().shape) != view.output_descriptor())
      return Status::invalid_argument("resizes into another layout");
  }
  return std::unique_ptr<Kernel>(std::make_unique<ResizeKernel>(view, channels));
}

}  // namespace foliot
