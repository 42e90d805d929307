/*
 * Malformed requests, from engines.md 2.4: none may be taken for a request.
 * A row is a number, a name and the bytes; sizeof() counts the NUL in one of them.
 */
#pragma once

#include <stddef.h>

/* clang-format off */
#define VECTOR(text) (text), sizeof(text) - 1

static const struct {
	int number;
	const char *name;
	const char *bytes;
	size_t len;
} http_vectors[] = {
	{ 1, "CL+TE both",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
		       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") },
	{ 2, "two different CL",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n"
		       "\r\nabcde") },
	{ 3, "CL list 4, 4",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4, 4\r\n"
		       "\r\nabcd") },
	{ 4, "CL +4",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n"
		       "\r\nabcd") },
	{ 5, "CL 4abc",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4abc\r\n"
		       "\r\nabcd") },
	{ 6, "CL 0x4",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0x4\r\n"
		       "\r\nabcd") },
	{ 7, "CL 2^64+4",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551620\r\n"
		       "\r\nabcd") },
	{ 8, "CL -4",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: -4\r\n"
		       "\r\nabcd") },
	{ 9, "space before colon TE",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n"
		       "\r\n0\r\n\r\n") },
	{ 10, "space before colon CL",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length : 4\r\n"
		       "\r\nabcd") },
	{ 11, "TE xchunked",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n"
		       "\r\n0\r\n\r\n") },
	{ 12, "TE chunked, identity",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n"
		       "\r\n0\r\n\r\n") },
	{ 13, "TE VT chunked",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \013chunked\r\n"
		       "\r\n0\r\n\r\n") },
	{ 14, "TE twice chunked",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") },
	{ 15, "TE in HTTP/1.0",
		VECTOR("POST /x HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n"
		       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") },
	{ 16, "bare CR in value CVE-2023-30589",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nX-Abc: \rxTransfer-Encoding: chunked\r\n"
		       "\r\n1\r\nA\r\n0\r\n\r\n") },
	{ 17, "obs-fold",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nX: 1\r\n Content-Length: 4\r\n"
		       "Content-Length: 4\r\n\r\nabcd") },
	{ 18, "space-led first hdr CVE-2024-27982",
		VECTOR("POST /x HTTP/1.1\r\n Host: a\r\n Content-Length: 4\r\n"
		       "Host: a\r\n\r\nabcd") },
	{ 19, "LF only lines",
		VECTOR("POST /x HTTP/1.1\nHost: a\nContent-Length: 4\n\nabcd") },
	{ 20, "NUL in header value",
		VECTOR("GET /x HTTP/1.1\r\nHost: a\r\nX: a\000b\r\n\r\n") },
	{ 21, "no Host",
		VECTOR("GET /x HTTP/1.1\r\nX: y\r\n\r\n") },
	{ 22, "two Hosts",
		VECTOR("GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n") },
	{ 23, "chunk size 0x1",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n0x1\r\nA\r\n0\r\n\r\n") },
	{ 24, "chunk size overflow",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n10000000000000001\r\nA\r\n0\r\n\r\n") },
	{ 25, "chunk no CRLF after data",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n1\r\nAX0\r\n\r\n") },
	{ 26, "chunk size LF only",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n1\nA\r\n0\r\n\r\n") },
	{ 27, "chunk ext bare LF",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n1;a\nxx\r\nA\r\n0\r\n\r\n") },
	{ 28, "negative chunk",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n-1\r\nA\r\n0\r\n\r\n") },
	{ 29, "hdr name with space",
		VECTOR("GET /x HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n") },
	{ 30, "hdr name with paren",
		VECTOR("GET /x HTTP/1.1\r\nHost: a\r\nX(Y: z\r\n\r\n") },
	{ 31, "hdr without colon",
		VECTOR("GET /x HTTP/1.1\r\nHost: a\r\nXY\r\n\r\n") },
	{ 32, "HTTP/1.1 junk ver",
		VECTOR("GET /x HTTP/1.1x\r\nHost: a\r\n\r\n") },
	{ 33, "URL with ctl",
		VECTOR("GET /x\001y HTTP/1.1\r\nHost: a\r\n\r\n") },
	{ 34, "lowercase method",
		VECTOR("get /x HTTP/1.1\r\nHost: a\r\n\r\n") },
	{ 35, "CRLF CR X ends head CVE-2025-23167",
		VECTOR("GET /x HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n") },
	{ 36, "CRLFCR+body TE after",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\rX\r\n\r\n0\r\n\r\n") },
	{ 37, "trailer with bare CR",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n0\r\nX: a\rY: b\r\n\r\n") },
	{ 38, "trailer CRLF CR X",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n0\r\nX: a\r\n\rX\r\n\r\n") },
	{ 39, "trailer Content-Length",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n0\r\nContent-Length: 5\r\n\r\n") },
	{ 40, "empty header name",
		VECTOR("GET /x HTTP/1.1\r\nHost: a\r\n: z\r\n\r\n") },
	{ 41, "chunk size spaces",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n1 \r\nA\r\n0\r\n\r\n") },
	{ 42, "chunk CRCRLF",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n1\r\r\nA\r\n0\r\n\r\n") },
	{ 43, "empty CL",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n") },
	{ 44, "last chunk LF only",
		VECTOR("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
		       "\r\n0\r\n\n") },
};
/* clang-format on */
