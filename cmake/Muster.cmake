# Compiler settings, the library helper, and generated protocol code. One call per folder keeps all libraries alike.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MUSTER_CCACHE})
endif()
find_program(MUSTER_MOLD mold)
if(MUSTER_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# Assertions of the standard library and MUSTER_CHECK stay on in optimised builds.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wthread-safety)
else()
  # GCC 12 wrongly reports absl::InlinedVector's inline storage; Clang and the sanitizers report no such read.
  add_compile_options(-Wno-maybe-uninitialized)
endif()

set(MUSTER_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them")
if(MUSTER_SANITIZE)
  # Halves the compile time: less inlining, and no second search for what AddressSanitizer finds anyway.
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    add_compile_options(-fno-sanitize=null,alignment,vptr,object-size "SHELL:-mllvm -inline-threshold=25")
  endif()
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()

# Servers link this first: an allocator that is fast when one thread frees memory that another allocated
# (docs/project/decisions/0016). The sanitizers bring their own.
add_library(muster_allocator INTERFACE)
if(NOT MUSTER_SANITIZE)
  find_library(MUSTER_TCMALLOC tcmalloc_minimal REQUIRED)
  target_link_libraries(muster_allocator INTERFACE -Wl,--no-as-needed ${MUSTER_TCMALLOC})
endif()

# In a build from scratch, most time goes into headers that many files include. Therefore several files of a library are
# compiled together. The linter reads every file alone and so finds missing includes.
option(MUSTER_UNITY "Compile the files of a library in batches; OFF: one by one, quicker where one file changes" ON)

# GCC limits how much inlining may enlarge a file, and a batch is a large file. Libraries on the fast path use these
# options, so that a batch is inlined as much as single files (docs/project/performance.md, "What a change costs").
set(MUSTER_INLINED "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT MUSTER_SANITIZE)
  set(MUSTER_INLINED --param=inline-unit-growth=300 --param=large-unit-insns=200000)
endif()

# Code that runs once, or for one user at a terminal, takes these options: it compiles in a fifth less time.
set(MUSTER_SELDOM_RUN -O1)

# muster_library(NAME SOURCES... DEPS...): a static library. It may link only its DEPS; tests/rules checks that it
# includes nothing else.
function(muster_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${MUSTER_UNITY})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/gen)
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# muster_program(NAME): what ships. Stripped, with its symbols beside it in NAME.debug, where debuggers find them.
function(muster_program name)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  if(NOT MUSTER_SANITIZE)
    add_custom_command(TARGET ${name} POST_BUILD
      COMMAND ${CMAKE_OBJCOPY} --only-keep-debug $<TARGET_FILE:${name}> $<TARGET_FILE:${name}>.debug
      COMMAND ${CMAKE_OBJCOPY} --strip-all --add-gnu-debuglink=$<TARGET_FILE:${name}>.debug $<TARGET_FILE:${name}>
      VERBATIM)
  endif()
endfunction()

add_custom_target(generated_headers)

# muster_proto(NAME ROOT FILES... [GRPC]): generated code for the .proto files below ROOT, the import root, compiled without
# our warnings.
function(muster_proto name root)
  cmake_parse_arguments(ARG "GRPC" "" "" ${ARGN})
  set(out ${PROJECT_BINARY_DIR}/gen)
  set(args --cpp_out=${out})
  if(ARG_GRPC)
    find_program(MUSTER_GRPC_PLUGIN grpc_cpp_plugin REQUIRED)
    list(APPEND args --grpc_out=${out} --plugin=protoc-gen-grpc=${MUSTER_GRPC_PLUGIN})
  endif()
  file(MAKE_DIRECTORY ${out})
  foreach(file ${ARG_UNPARSED_ARGUMENTS})
    string(REPLACE ".proto" "" stem ${file})
    list(APPEND inputs ${root}/${file})
    list(APPEND sources ${out}/${stem}.pb.cc)
    list(APPEND headers ${out}/${stem}.pb.h)
    if(ARG_GRPC)
      list(APPEND sources ${out}/${stem}.grpc.pb.cc)
      list(APPEND headers ${out}/${stem}.grpc.pb.h)
    endif()
  endforeach()
  add_custom_command(
    OUTPUT ${sources} ${headers}
    COMMAND protobuf::protoc -I${root} ${args} ${inputs}
    DEPENDS ${inputs} VERBATIM)
  add_custom_target(${name}_headers DEPENDS ${headers})
  add_dependencies(generated_headers ${name}_headers)
  add_library(${name} STATIC ${sources} ${headers})
  target_compile_options(${name} PRIVATE -w -O1)
  if(MUSTER_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # protoc's code is not under test, and it is a large part of what is compiled.
    target_compile_options(${name} PRIVATE -O0 -fno-sanitize=all)
  endif()
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
  if(ARG_GRPC)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()

# cpp-httplib as Debian compiles it: with OpenSSL, zlib and brotli. The header needs the same definitions.
add_library(muster_httplib INTERFACE)
target_compile_definitions(muster_httplib INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
target_link_libraries(muster_httplib INTERFACE cpp-httplib ssl crypto)
