// Package export gives partners their own records of a period as files: the saga type "data-export" and its workers.
//
//	freeze the records ─► write page after page ─► publish
//	     undo: discard ◄───── delete the objects ◄─┘ pivot
//
// The records are copied aside by one statement, so that all pages show one moment however long writing them takes, and no
// transaction is held open meanwhile. Each page is a step of its own: a worker that dies loses one page at most, and the
// partner sees how many are written. The objects are deleted when the answer's retention ends ([Exports.Run]).
//
// What may be exported is declared as [Dataset]: fields that a catalog entry without personal data has, of the partner's own
// rows. Which object storage it is, is the program's choice ([Objects]).
package export
