// Certificates for tests: an authority and the certificates that it issues, as PEM files. Not thread-safe.
#ifndef MUSTER_TESTS_SUPPORT_CERTIFICATES_H_
#define MUSTER_TESTS_SUPPORT_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace muster {

class TestAuthority {
 public:
  // Writes `folder`/`name`.pem.
  TestAuthority(const std::string& folder, const std::string& name);
  // Writes `folder`/`name`.pem and `folder`/`name`.key for common name `common`, valid for "localhost" and 127.0.0.1,
  // from an hour ago until `seconds_left` from now. `email`: another alternative name; empty: none.
  void Issue(const std::string& name, const std::string& common, long seconds_left = 3600,
             const std::string& email = "") const;
  [[nodiscard]] std::string ca_file() const { return ca_file_; }
  [[nodiscard]] std::string cert_file(const std::string& name) const { return folder_ + "/" + name + ".pem"; }
  [[nodiscard]] std::string key_file(const std::string& name) const { return folder_ + "/" + name + ".key"; }

 private:
  const std::string folder_;
  const std::string ca_file_;
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
};

}  // namespace muster

#endif  // MUSTER_TESTS_SUPPORT_CERTIFICATES_H_
