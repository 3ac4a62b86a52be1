// Package ticketing issues the tickets of a confirmed booking: the saga type
// "ticketing", its workers, and the door where the airline's answer comes in.
//
// It is an operation of its own, started by the confirmation of the booking in
// the same transaction ([Plan]), and may take a day (spec I5). The airline
// answers by a callback ([NewCallback]), maybe twice; the callback writes the
// answer down and queues a message to the process in one transaction.
package ticketing
