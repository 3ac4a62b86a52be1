// Package refund gives a sold booking back: the saga type "refund" and its workers.
//
// Every segment is given back to its supplier, all at once; an iteration never
// throws, it ends with a result. Only when every supplier took its segment
// back the refund is approved (the pivot) and the money paid; otherwise what was
// taken back is reinstated from the ledger and the booking is as before.
package refund
