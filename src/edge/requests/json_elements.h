// JsonElements: the elements of a tensor as JSON has them, lists within each other, as little-endian bytes. Floating
// point also takes "NaN", "Infinity" and "-Infinity" in quotes; booleans also 0 and 1.
//
// Threading: one thread for each.
#ifndef FOLIOT_EDGE_REQUESTS_JSON_ELEMENTS_H_
#define FOLIOT_EDGE_REQUESTS_JSON_ELEMENTS_H_

#include <simdjson.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/core/tensor.h"

namespace foliot {

// quote_not_finite() puts numbers that JSON lacks, such as NaN, into quotes: Triton and its clients write them bare.
// The result is empty if there are none.
std::string quote_not_finite(std::string_view json);

// Appends elements in their order. Lists of one depth must have one length, and hold either lists or elements: rows
// that are ragged are a tensor of no shape. Recursion follows the depth of the document, which its parser bounds.
class JsonElements {
 public:
  // Floating point takes null as NaN, if `takes_null`. REQUIRES: `type` is no 16-bit float. `bytes` outlives this.
  JsonElements(DataType type, std::string& bytes, bool takes_null)
      : type_(type), bytes_(bytes), takes_null_(takes_null) {}

  // An element or a list of them, of the same shape as those before. False: it is ragged, or holds what refused() says;
  // nothing may be added then.
  bool add(simdjson::dom::element value);
  // The shape of the values that were added; it is empty for a single element.
  Shape shape() const;

  bool is_ragged() const { return is_ragged_; }
  bool has_nulls() const { return has_nulls_; }
  // The first that is not of the type.
  std::optional<simdjson::dom::element> refused() const { return refused_; }

 private:
  struct Level {
    std::optional<size_t> length;
    bool has_lists = false;
    bool has_elements = false;
  };

  template <typename T, typename Get>
  bool add_as(simdjson::dom::element value, Get get);
  bool add_string(simdjson::dom::element value);
  bool visit(simdjson::dom::element value, const auto& append, size_t depth);

  const DataType type_;
  std::string& bytes_;
  const bool takes_null_;
  bool has_nulls_ = false;
  // By depth, as many as the parser allows lists within each other; [0] has the values that were added.
  std::vector<Level> levels_;
  bool is_ragged_ = false;
  std::optional<simdjson::dom::element> refused_;
};

}  // namespace foliot

#endif  // FOLIOT_EDGE_REQUESTS_JSON_ELEMENTS_H_
