/* What a box needs to reach itself by name, and the outside: a name server, and what to trust. */
#pragma once

/*
 * Without a name server of its own, the slot's: berth-egress answers at any address. The name
 * of the box in /etc/hosts: asked outside, it would be a name that no policy allows. With
 * `trust` ("HASH" on a line, then a certificate) that is added to the lists of this root.
 * What cannot be written is left: a root may be anything.
 */
void rootfs_setup(const char *trust);
