# The C++ clients of commit fbdcc39 and their conformance test, and nothing of its musterd: old_clients.sh puts this file in the
# place of the old tree's own CMakeLists.txt. MUSTERD and CASES are the present ones.
cmake_minimum_required(VERSION 3.25)
project(muster VERSION 0.1.0 LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
include(Muster)
add_compile_options(-w)  # nobody mends what a later compiler warns of

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(GTest REQUIRED)

add_subdirectory(proto EXCLUDE_FROM_ALL)
add_subdirectory(clients)

foreach(path MUSTERD CASES)
  if(NOT EXISTS "${${path}}")
    message(FATAL_ERROR "${path} must be a path: \"${${path}}\"")
  endif()
endforeach()
# Of the old core the language of scenarios needs headers only, for the names of annotations.
add_executable(conformance_test
  tests/contract/conformance_test.cc tests/contract/running_musterd.cc tests/scenario/language.cc)
target_include_directories(conformance_test PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(conformance_test PRIVATE MUSTERD_PATH="${MUSTERD}" MUSTER_SCENARIO_DIR="${CASES}")
target_link_libraries(conformance_test PRIVATE
  muster_client_cpp nlohmann_json::nlohmann_json absl::strings absl::time Threads::Threads GTest::gtest_main)
set_target_properties(conformance_test orchestrator_example PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
