/* absent.c: what the archives of the portable build refer to and gpulab never calls: TLS in
 * libmicrohttpd, block devices' names in hwloc. Without it the program would need libgnutls with
 * its ten libraries, and libudev, on every machine. A server with TLS fails to start; hwloc finds
 * no udev and goes on without. */
#include <stddef.h>

void *udev_new(void);
const char *gnutls_strerror(int error);
int gnutls_global_init(void);

void *udev_new(void) {
    return NULL;
}

const char *gnutls_strerror(int error) {
    (void)error;
    return "this build has no TLS";
}

int gnutls_global_init(void) {
    return 0;
}

void *(*gnutls_malloc)(size_t size);

#define ABSENT(name)                                                                               \
    long name(void);                                                                               \
    long name(void) {                                                                              \
        return -1;                                                                                 \
    }

ABSENT(udev_device_get_property_value)
ABSENT(udev_device_new_from_subsystem_sysname)
ABSENT(udev_device_unref)
ABSENT(udev_unref)
ABSENT(gnutls_alpn_set_protocols)
ABSENT(gnutls_bye)
ABSENT(gnutls_certificate_allocate_credentials)
ABSENT(gnutls_certificate_free_credentials)
ABSENT(gnutls_certificate_server_set_request)
ABSENT(gnutls_certificate_set_dh_params)
ABSENT(gnutls_certificate_set_retrieve_function2)
ABSENT(gnutls_certificate_set_retrieve_function3)
ABSENT(gnutls_certificate_set_x509_key_mem)
ABSENT(gnutls_certificate_set_x509_key_mem2)
ABSENT(gnutls_certificate_set_x509_trust_mem)
ABSENT(gnutls_cipher_get)
ABSENT(gnutls_credentials_set)
ABSENT(gnutls_deinit)
ABSENT(gnutls_dh_params_deinit)
ABSENT(gnutls_dh_params_import_pkcs3)
ABSENT(gnutls_dh_params_init)
ABSENT(gnutls_global_deinit)
ABSENT(gnutls_handshake)
ABSENT(gnutls_init)
ABSENT(gnutls_priority_deinit)
ABSENT(gnutls_priority_init)
ABSENT(gnutls_priority_set)
ABSENT(gnutls_protocol_get_version)
ABSENT(gnutls_psk_allocate_server_credentials)
ABSENT(gnutls_psk_free_server_credentials)
ABSENT(gnutls_psk_set_server_credentials_function)
ABSENT(gnutls_record_check_pending)
ABSENT(gnutls_record_get_direction)
ABSENT(gnutls_record_recv)
ABSENT(gnutls_record_send)
ABSENT(gnutls_session_get_ptr)
ABSENT(gnutls_session_set_ptr)
ABSENT(gnutls_transport_set_int2)
