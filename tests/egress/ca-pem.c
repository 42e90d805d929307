/* Print the certificate of the CA that a seed makes: what a box is to trust. */
#include <stdio.h>

#include "lib/ca.h"

int main(int argc, char **argv)
{
	cleanup(buf_done) struct buf pem = buf_make(8192);
	struct ca ca = { 0 };
	struct err e;

	if (argc != 3 || ca_make(argv[1], argv[2], &ca, &e) < 0 || ca_pem(&ca, &pem, &e) < 0)
		return 1;
	ca_done(&ca);
	return fputs(buf_str(&pem), stdout) < 0;
}
