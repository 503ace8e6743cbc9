/* An empty library. It is copied under many names, so that the loader has something to search for;
 * it has no DT_SONAME, which would make the loader treat the copies as one library. */
int payload_library(void)
{
	return 0;
}
