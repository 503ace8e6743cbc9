/* A library with nothing in it. It is copied under many names, so that the loader has something to search for;
 * it has no DT_SONAME, by which the loader would take the copies for one. */
int payload_library(void)
{
	return 0;
}
