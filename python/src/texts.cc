#include <nanobind/stl/string.h>

#include <optional>
#include <utility>
#include <vector>

#include "handle.h"
#include "numpy.h"
#include "rhizome/text_values.h"

namespace rhizome::python {
namespace {

using Codes = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Returns texts as a list of str, with None for an empty one.
nb::list ToList(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) {
    if (text.empty())
      list.append(nb::none());
    else
      list.append(nb::str(text.data(), text.size()));
  }
  return list;
}

/// Returns the texts of vertices in an array of texts.
nb::list TextsOfVertices(const PyGraph& graph, const std::string& array, nb::handle ids) {
  const auto snapshot = graph.Snapshot();
  const Ids vertices(ids, snapshot->vertex_count());
  return ToList(Take(Unlocked([&]() -> Result<std::vector<std::string>> {
    RHIZOME_ASSIGN_OR_RETURN(const auto texts, TextValues::Open(*snapshot, array));
    return texts->TextsOfVertices(vertices.span());
  })));
}

/// Returns the texts of codes of an array of texts, or of an edge attribute.
nb::list TextsOfCodes(const PyGraph& graph, const std::string& array, nb::handle codes) {
  const auto snapshot = graph.Snapshot();
  const auto numbers = nb::cast<Codes>(codes, false);
  const std::span<const std::int64_t> wanted(numbers.data(), numbers.size());
  return ToList(Take(Unlocked([&]() -> Result<std::vector<std::string>> {
    RHIZOME_ASSIGN_OR_RETURN(const auto texts, TextValues::Open(*snapshot, array));
    return texts->TextsOf(wanted);
  })));
}

/// Returns the code of a text; None if there is no such text.
nb::object CodeOfText(const PyGraph& graph, const std::string& array, const std::string& text) {
  const auto snapshot = graph.Snapshot();
  const auto code = Take(Unlocked([&]() -> Result<std::optional<std::int64_t>> {
    RHIZOME_ASSIGN_OR_RETURN(const auto texts, TextValues::Open(*snapshot, array));
    return texts->CodeOf(text);
  }));
  return code ? nb::cast(*code) : nb::none();
}

nb::list NamesOfClasses(const PyGraph& graph, const std::string& labels) {
  const auto snapshot = graph.Snapshot();
  nb::list list;
  for (const std::string& name : Take(Unlocked([&] { return ReadClassNames(*snapshot, labels); })))
    list.append(nb::str(name.data(), name.size()));
  return list;
}

}  // namespace

void BindTexts(nb::module_& module) {
  module.def("texts_of_vertices", &TextsOfVertices, nb::arg("graph"), nb::arg("array"),
             nb::arg("ids"),
             nb::sig("def texts_of_vertices(graph: Graph, array: str, ids: object) -> "
                     "list[str | None]"));
  module.def("texts_of_codes", &TextsOfCodes, nb::arg("graph"), nb::arg("array"), nb::arg("codes"),
             nb::sig("def texts_of_codes(graph: Graph, array: str, codes: numpy.ndarray) -> "
                     "list[str | None]"));
  module.def("code_of_text", &CodeOfText, nb::arg("graph"), nb::arg("array"), nb::arg("text"),
             nb::sig("def code_of_text(graph: Graph, array: str, text: str) -> int | None"));
  module.def("class_names", &NamesOfClasses, nb::arg("graph"), nb::arg("labels"),
             nb::sig("def class_names(graph: Graph, labels: str) -> list[str]"));
}

}  // namespace rhizome::python
