#include "core.h"

#include <nanobind/stl/string.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "log.h"
#include "rhizome/graph_types.h"
#include "storage/options/spell_fields.h"

namespace rhizome::python {

void StayForEver() noexcept {
  while (true) pause();
}

namespace {

std::atomic<int> g_threads_in_engine{0};

void EndNow(int status, void*) {
  if (g_threads_in_engine.load() == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

void EndWithThreadsInTheEngine() { static_cast<void>(on_exit(EndNow, nullptr)); }

ReleasedGil::ReleasedGil() : state_(PyEval_SaveThread()) { ++g_threads_in_engine; }

ReleasedGil::~ReleasedGil() {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {  // not a C++ exception, but pthread_exit
    StayForEver();
  }
  --g_threads_in_engine;
}

InEngine::InEngine() { ++g_threads_in_engine; }
InEngine::~InEngine() { --g_threads_in_engine; }

nb::object Spelled(const std::string& message) {
  return InPython([&]() -> nb::object {
    return nb::module_::import_("rhizome._spelling").attr("in_process")(message);
  });
}

void Raise(const Status& status, About about) {
  const nb::object message = Spelled(status.message());
  const nb::object error = InPython([&]() -> nb::object {
    return nb::module_::import_("rhizome.errors")
        .attr("_of_code")(std::string(StatusCodeName(status.code())), message,
                          about == About::kStore ? "store" : "contents");
  });
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

Ids::Ids(nb::handle ids, std::uint64_t vertices) {
  if (!nb::try_cast(ids, array_, false)) {
    // NumPy converts lists, other integer types, masks and strided arrays to such an array.
    const nb::object array = InPython([&]() -> nb::object {
      return nb::module_::import_("rhizome._types").attr("as_vertex_ids")(ids, vertices);
    });
    array_ = nb::cast<decltype(array_)>(array, false);
  }
  const auto outside = [&](VertexId id) { return static_cast<std::uint64_t>(id) >= vertices; };
  const auto wrong = std::find_if(span().begin(), span().end(), outside);
  if (wrong == span().end()) return;
  throw nb::index_error(
      ("vertex id " + std::to_string(*wrong) + " is not in [0, " + std::to_string(vertices) + ")")
          .c_str());
}

bool IsOneId(nb::handle value) {
  return PyUnicode_Check(value.ptr()) || PyLong_Check(value.ptr()) ||
         (PyIndex_Check(value.ptr()) && !nb::hasattr(value, "__len__"));
}

std::string_view TextOfId(nb::handle id) {
  Py_ssize_t bytes = 0;
  const char* text = PyUnicode_AsUTF8AndSize(id.ptr(), &bytes);
  if (text != nullptr) return {text, static_cast<std::size_t>(bytes)};
  PyErr_Clear();
  const nb::object shown = nb::steal(PyObject_ASCII(id.ptr()));
  if (!shown.is_valid()) throw nb::python_error();
  throw nb::value_error(("the id " + nb::cast<std::string>(shown) +
                         " is no text: UTF-8 has no bytes for half of a surrogate pair")
                            .c_str());
}

ExternalId IdOf(nb::handle value) {
  if (PyUnicode_Check(value.ptr())) return std::string(TextOfId(value));
  if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr()))
    throw nb::type_error("an id is a str or an int");
  const nb::object number = InPython([&] { return nb::steal(PyNumber_Index(value.ptr())); });
  if (!number.is_valid()) throw nb::python_error();
  const std::int64_t id = PyLong_AsLongLong(number.ptr());
  if (id == -1 && PyErr_Occurred()) throw nb::python_error();
  return id;
}

nb::object ToPython(const ExternalId& id) {
  if (const auto* number = std::get_if<std::int64_t>(&id)) return nb::int_(*number);
  const auto& text = std::get<std::string>(id);
  return nb::str(text.data(), text.size());
}

std::uint64_t CountOf(nb::handle value, const char* name, std::uint64_t least) {
  const nb::object count = InPython([&]() -> nb::object {
    return nb::module_::import_("rhizome._types").attr("as_count")(value, name, least);
  });
  return nb::cast<std::uint64_t>(count);
}

namespace {

/// SpellFields, with a Python function that receives the name of the field, its value or None, and
/// whether the field is a boolean. It returns the text, or None for text that remains.
std::string SpellFieldsBy(const std::string& message, const nb::callable& spell) {
  return SpellFields(message, [&](const FieldMention& mention) {
    return InPython([&] {
      const std::string_view name = mention.field.name;
      nb::object value = nb::none();
      if (mention.value) value = nb::str(mention.value->data(), mention.value->size());
      return nb::cast<std::optional<std::string>>(
          spell(nb::str(name.data(), name.size()), value, mention.field.is_boolean));
    });
  });
}

}  // namespace

void BindSpelling(nb::module_& module) {
  module.def("spell_fields", &SpellFieldsBy, nb::arg("message"), nb::arg("spell"),
             nb::sig("def spell_fields(message: str, spell: object) -> str"));
  module.def(
      "option_fields",
      [] {
        nb::list names;
        for (const OptionField& field : OptionFields())
          names.append(nb::str(field.name.data(), field.name.size()));
        return names;
      },
      nb::sig("def option_fields() -> list[str]"));
}

Direction DirectionOf(std::string_view name) {
  if (name == "out") return Direction::kOut;
  if (name == "in") return Direction::kIn;
  if (name == "both") return Direction::kBoth;
  throw nb::value_error("a direction is 'out', 'in' or 'both'");
}

}  // namespace rhizome::python

NB_MODULE(_core, module) {
  namespace python = rhizome::python;
  module.doc() = "The engine behind the package rhizome; use it through that package.";
  // A worker process may leave objects behind when it ends. That is expected, so no warning is
  // printed.
  nanobind::set_leak_warnings(false);
  module.attr("VERSION") = RHIZOME_VERSION;
  python::EndWithThreadsInTheEngine();
  nanobind::module_::import_("atexit").attr("register")(
      nanobind::cpp_function(&python::EndWithThreadsInTheEngine));
  python::BindSpelling(module);
  python::BindGraph(module);
  python::BindArray(module);
  python::BindScan(module);
  python::BindChanges(module);
  python::BindSampler(module);
  python::BindLoader(module);
  python::BindEdgeValues(module);
  python::BindTexts(module);
  python::BindWriting(module);
  python::BindIngest(module);
  python::BindJobs(module);
  nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(&python::StopLogs));
}
