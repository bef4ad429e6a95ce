/* What a client says of an error: a server sends a code, an ISAM code and the argument of the message,
 * and no text (SQ_ERR; seen by IBM's JDBC driver, which has the texts itself, as every client kit has in
 * its message files).
 *
 * The texts are our own, after what the numbers mean ("Informix error messages", finderr); %s takes
 * the argument. */
#include "driver.h"

#include <stdio.h>
#include <string.h>

typedef struct { I code; const char *state, *text; } Message;

static const Message MESSAGES[] = {
    {-201, "42000", "A syntax error has occurred."},
    {-202, "42000", "An illegal character has been found in the statement."},
    {-206, "42S02", "The specified table (%s) is not in the database."},
    {-213, "HY008", "Statement interrupted by user."},
    {-217, "42S22", "Column (%s) not found in any table in the query."},
    {-236, "21S01", "Number of columns in INSERT does not match number of VALUES."},
    {-239, "23000", "Could not insert new row - duplicate value in a UNIQUE INDEX column (%s)."},
    {-242, "IX000", "Could not open database table (%s)."},
    {-243, "IX000", "Could not position within a table (%s)."},
    {-244, "IX000", "Could not do a physical-order read to fetch next row."},
    {-245, "IX000", "Could not position within a file via an index."},
    {-246, "IX000", "Could not do an indexed read to get the next row."},
    {-255, "25000", "Not in transaction."},
    {-256, "HY000", "Transaction not available."},
    {-263, "IX000", "Could not lock row for UPDATE."},
    {-268, "23000", "Unique constraint (%s) violated."},
    {-271, "HY000", "Could not insert new row into the table."},
    {-272, "42000", "No SELECT permission for %s."},
    {-273, "42000", "No UPDATE permission for %s."},
    {-274, "42000", "No DELETE permission for %s."},
    {-275, "42000", "No INSERT permission for %s."},
    {-282, "42000", "Found a quote for which there is no matching quote."},
    {-284, "21000", "A subquery has returned not exactly one row."},
    {-289, "IX000", "Cannot lock table (%s) in requested mode."},
    {-310, "42S01", "Table (%s) already exists in database."},
    {-316, "42S11", "Index (%s) already exists in database."},
    {-319, "42S12", "Index does not exist."},
    {-329, "3D000", "Database not found or no system permission."},
    {-330, "IX000", "Cannot create or rename the database."},
    {-346, "IX000", "Could not update a row in the table."},
    {-349, "3D000", "Database not selected yet."},
    {-354, "42000", "Incorrect database or cursor name format."},
    {-387, "28000", "No connect permission."},
    {-388, "42000", "No resource permission."},
    {-391, "23000", "Cannot insert a null into column (%s)."},
    {-404, "34000", "The cursor or statement is not available."},
    {-406, "HY001", "Memory allocation failed."},
    {-408, "HY000", "Invalid message type received from the sqlexec process."},
    {-410, "HY010", "Prepare statement failed or was not executed."},
    {-425, "IX000", "Database is currently opened by another user."},
    {-458, "IX000", "Long transaction aborted."},
    {-460, "IX000", "Statement length exceeds maximum."},
    {-517, "IX000", "The total size of the index is too large or too many parts in index."},
    {-530, "23000", "Check constraint (%s) failed."},
    {-535, "25000", "Already in transaction."},
    {-668, "IX000", "System command cannot be executed or it exited with an error."},
    {-674, "42000", "Routine (%s) can not be resolved."},
    {-691, "23000", "Missing key in referenced table for referential constraint (%s)."},
    {-692, "23000", "Key value for constraint (%s) is still being referenced."},
    {-703, "23000", "Primary key on table (%s) has a field with a null key value."},
    {-746, "IX000", "%s"},
    {-761, "08004", "INFORMIXSERVER does not match either DBSERVERNAME or DBSERVERALIASES."},
    {-908, "08001", "Attempt to connect to database server failed."},
    {-951, "28000", "Incorrect password or user %s is not known on the database server."},
    {-952, "28000", "User (%s)'s password is not correct for the database server."},
    {-956, "28000", "Client host or user %s is not trusted by the server."},
    {-1202, "22012", "An attempt was made to divide by zero."},
    {-1204, "22007", "Invalid year in date."},
    {-1205, "22007", "Invalid month in date."},
    {-1206, "22007", "Invalid day in date."},
    {-1213, "22018", "A character to numeric conversion process failed."},
    {-1226, "22003", "Decimal or money value exceeds maximum precision."},
    {-1262, "22007", "Non-numeric character in datetime or interval."},
    {-1263, "22007", "A field in a datetime or interval value is out of the correct range."},
    {-1264, "22007", "Extra characters at the end of a datetime or interval."},
    {-1279, "22001", "Value exceeds string column length."},
    {-1824, "IX000", "Message cannot be found (%s)."},
    {-9810, "IX000", "Smart-large-object error."},
    {-12008, "IX000", "Invalid smart-large-object file descriptor (%s)."},
    {-19816, "IX000", "Cannot perform this operation on a table defined for replication."},
    {-23101, "IX000", "Unable to load locale categories."},
    {-23103, "IX000", "Code-set conversion failed: an illegal sequence or no such character."},
    {-23109, "IX000", "Invalid locale specification (%s)."},
    {-23197, "IX000", "Database locale information mismatch."},
    {-25555, "08004", "Server is not listed as a dbserver name in sqlhosts."},
    {-25580, "08S01", "System error occurred in network function."},
    {-25582, "08S01", "Network connection is broken."},
    {-25596, "08004", "The server name %s is not known here."},
    {-27001, "08S01", "Read error occurred during connection attempt."},
    /* ISAM */
    {-100, "23000", "ISAM error: duplicate value for a record with unique key."},
    {-101, "IX000", "ISAM error: file is not open."},
    {-102, "IX000", "ISAM error: illegal argument to ISAM function."},
    {-104, "IX000", "ISAM error: too many files open."},
    {-106, "IX000", "ISAM error: non-exclusive access."},
    {-107, "IX000", "ISAM error: record is locked."},
    {-108, "IX000", "ISAM error: key already exists."},
    {-110, "IX000", "ISAM error: end of file."},
    {-111, "IX000", "ISAM error: no record found."},
    {-113, "IX000", "ISAM error: the file is locked."},
    {-12014, "IX000", "Smart Large Objects: no such descriptor is open."},
    {-12048, "IX000", "Smart Large Objects: another object is there; this one has probably been deleted."},
    {-12086, "IX000", "Smart Large Objects: flags that an object cannot be opened with."},
    {-12097, "IX000", "Smart Large Objects: no object is at that address; it may have been deleted."},
    {-12210, "IX000", "Smart Large Objects: no more descriptors."},
    {-131, "IX000", "ISAM error: no free disk space."},
    {-134, "IX000", "ISAM error: no more locks."},
    {-140, "IX000", "ISAM error: operation illegal on this file."},
    {-143, "40001", "ISAM error: deadlock detected."},
    {-154, "IX000", "ISAM error: lock timeout expired."},
};

static const Message *message_of(I code) {
    for (size_t i = 0; i < sizeof MESSAGES / sizeof *MESSAGES; i++)
        if (MESSAGES[i].code == code) return &MESSAGES[i];
    return NULL;
}

RC fail_with(H handle, I native, const char *argument) {
    const Message *message = message_of(native);
    const char *text = message ? message->text : "Message %s of the server is not known here.";
    const char *given = argument ? argument : "";
    char number[16], filled[1024] = "[Informix]";
    size_t used = strlen(filled);
    const char *place = strstr(text, "%s");
    snprintf(number, sizeof number, "%d", native);
    if (!message) given = number;
    if (!place) snprintf(filled + used, sizeof filled - used, "%s", text);
    else snprintf(filled + used, sizeof filled - used, "%.*s%.500s%s", (int)(place - text), text, given, place + 2);
    return fail(handle, message ? message->state : "HY000", native, filled);
}

/* The ISAM code says why: a record of its own. */
RC fail_with_isam(H handle, I native, I isam, const char *argument) {
    if (native) fail_with(handle, native, argument);
    if (isam) fail_with(handle, isam, NULL);
    return ERR;
}
