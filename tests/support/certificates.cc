#include "tests/support/certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>

namespace muster {
namespace {

long next_serial = 1;

std::shared_ptr<EVP_PKEY> NewKey() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

std::shared_ptr<X509> NewCertificate(EVP_PKEY* key, const std::string& common, long seconds_left, X509* issuer) {
  std::shared_ptr<X509> out(X509_new(), &X509_free);
  X509_set_version(out.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(out.get()), next_serial++);
  X509_gmtime_adj(X509_getm_notBefore(out.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(out.get()), seconds_left);
  X509_set_pubkey(out.get(), key);
  X509_NAME* name = X509_get_subject_name(out.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common.data()),
                             static_cast<int>(common.size()), -1, 0);
  X509_set_issuer_name(out.get(), issuer == nullptr ? name : X509_get_subject_name(issuer));
  return out;
}

void Extend(X509* certificate, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Writes a new file and renames it, as a renewal of certificates should.
template <typename WritePem>
void WriteFile(const std::string& path, WritePem write) {
  std::FILE* file = std::fopen((path + ".new").c_str(), "w");
  write(file);
  std::fclose(file);
  std::rename((path + ".new").c_str(), path.c_str());
}

void WriteCertificate(const std::string& path, X509* certificate) {
  WriteFile(path, [&](std::FILE* file) { PEM_write_X509(file, certificate); });
}

}  // namespace

TestAuthority::TestAuthority(const std::string& folder, const std::string& name)
    : folder_(folder), ca_file_(folder + "/" + name + ".pem"), key_(NewKey()) {
  certificate_ = NewCertificate(key_.get(), name, 24 * 3600, nullptr);
  Extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  Extend(certificate_.get(), NID_key_usage, "critical,keyCertSign");
  X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  WriteCertificate(ca_file_, certificate_.get());
}

void TestAuthority::Issue(const std::string& name, const std::string& common, long seconds_left,
                          const std::string& email) const {
  const std::shared_ptr<EVP_PKEY> key = NewKey();
  const std::shared_ptr<X509> out = NewCertificate(key.get(), common, seconds_left, certificate_.get());
  const std::string names = "DNS:localhost,IP:127.0.0.1" + (email.empty() ? "" : ",email:" + email);
  Extend(out.get(), NID_subject_alt_name, names.c_str());
  X509_sign(out.get(), key_.get(), EVP_sha256());
  WriteFile(key_file(name),
            [&](std::FILE* file) { PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  WriteCertificate(cert_file(name), out.get());
}

}  // namespace muster
