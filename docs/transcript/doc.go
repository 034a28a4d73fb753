// Package transcript replays documents of transcripts: it types the commands of a
// page into a shell and holds what comes back to what the page promises, so
// that people who follow the page find it true.
//
// It knows nothing of the fleet and must not import any of it. It fails by
// naming the command, the line that was promised and the lines that came.
package transcript
