package models

// Messages.
const (
	MessageStartTourBooking = "saga.start.tour-booking"
	MessageStartRefund      = "saga.start.refund"
	MessageStartTicketing   = "saga.start.ticketing"
	MessageStartAmendment   = "saga.start.amendment"
	MessageStartReservation = "saga.start.reservation"
	MessageStartDataExport  = "saga.start.data-export"
	MessageCancel           = "saga.cancel"             // correlation key: the saga id
	MessageTicketIssued     = "ticketing.ticket.issued" // correlation key: the saga id
)

// Job types of the saga machinery.
const (
	JobSagaBegin    = "saga.begin"
	JobSagaGiveUp   = "saga.give-up"
	JobSagaUndoRest = "saga.undo-rest"
	JobSagaClose    = "saga.close"
)

// Job types of the tour booking.
const (
	JobFlightReserve    = "flight.reserve"
	JobFlightCancel     = "flight.cancel"
	JobFlightFollowUp   = "flight.follow-up"
	JobHotelReserve     = "hotel.reserve"
	JobHotelCancel      = "hotel.cancel"
	JobHotelFollowUp    = "hotel.follow-up"
	JobTransferReserve  = "transfer.reserve"
	JobTransferCancel   = "transfer.cancel"
	JobTransferFollowUp = "transfer.follow-up"
	JobPaymentAuthorize = "payment.authorize"
	JobPaymentVoid      = "payment.void"
	JobPaymentFollowUp  = "payment.follow-up"
	JobBookingConfirm   = "booking.confirm"
	JobPaymentCapture   = "payment.capture"
	JobCaptureFollowUp  = "payment.capture-follow-up"
)

// Job types of the refund.
const (
	JobSegmentRefund    = "segment.refund"
	JobSegmentReinstate = "segment.reinstate" // has no task in the model: the ledger undoes iterations
	JobSegmentFollowUp  = "segment.follow-up"
	JobRefundApprove    = "refund.approve"
	JobRefundPay        = "refund.pay"
	JobRefundFollowUp   = "refund.follow-up"
)

// Job types of ticketing.
const (
	JobTicketRequest  = "ticket.request"
	JobTicketWithdraw = "ticket.withdraw"
	JobTicketFollowUp = "ticket.follow-up"
	JobTicketRecord   = "ticket.record"
)

// Job types of the amendment.
const (
	JobAmendmentBegin      = "amendment.begin"
	JobAmendmentBack       = "amendment.back"
	JobAmendmentReserve    = "amendment.reserve"
	JobAmendmentRelease    = "amendment.release"
	JobAmendmentAuthorize  = "amendment.authorize"
	JobAmendmentVoid       = "amendment.void"
	JobAmendmentConfirm    = "amendment.confirm"
	JobAmendmentSettle     = "amendment.settle"
	JobAmendmentReleaseOld = "amendment.release-old"

	JobAmendmentFollowUp        = "amendment.follow-up"
	JobAmendmentPaymentFollowUp = "amendment.payment-follow-up"
	JobAmendmentSettleFollowUp  = "amendment.settle-follow-up"
)

// Job types of the reservation.
const (
	JobReservationReserve         = "reservation.reserve"
	JobReservationRelease         = "reservation.release"
	JobReservationFollowUp        = "reservation.follow-up"
	JobReservationAuthorize       = "reservation.authorize"
	JobReservationVoid            = "reservation.void"
	JobReservationPaymentFollowUp = "reservation.payment-follow-up"
	JobReservationConfirm         = "reservation.confirm"
	JobReservationCapture         = "reservation.capture"
	JobReservationCaptureFollowUp = "reservation.capture-follow-up"
)

// Job types of the data export.
const (
	JobExportFreeze  = "export.freeze"
	JobExportDiscard = "export.discard" // has no task in the model: the ledger undoes
	JobExportWrite   = "export.write"
	JobExportDelete  = "export.delete" // has no task in the model: the ledger undoes iterations
	JobExportPublish = "export.publish"
)

// Error codes that a model catches or throws.
const (
	CodeSagaNotMine        = "SAGA_NOT_MINE"
	CodeOutcomeUnknown     = "OUTCOME_UNKNOWN"
	CodeSegmentsIncomplete = "SEGMENTS_INCOMPLETE"
	CodeCaptureRefused     = "CAPTURE_REFUSED"
	CodeRefundIncomplete   = "REFUND_INCOMPLETE"
	CodeRefundRefused      = "REFUND_REFUSED"
)

// Error codes that workers give and no element catches by name: the event subprocess for any error does.
const (
	CodeSoldOut             = "SOLD_OUT"
	CodeOfferUnknown        = "OFFER_UNKNOWN"
	CodeReservationRefused  = "RESERVATION_REFUSED"
	CodeNotReserved         = "NOT_RESERVED"
	CodePaymentDeclined     = "PAYMENT_DECLINED"
	CodeTicketingRefused    = "TICKETING_REFUSED"
	CodeBookingNotConfirmed = "BOOKING_NOT_CONFIRMABLE"
)

// Element ids that other packages refer to: forward steps, in the order a partner sees them.
const (
	StepFlightReserve    = "flightReserve" // one per iteration: "flightReserve:<segment id>"; so are the next two
	StepHotelReserve     = "hotelReserve"
	StepTransferReserve  = "transferReserve"
	StepPaymentAuthorize = "paymentAuthorize"
	StepBookingConfirm   = "bookingConfirm"
	StepPaymentCapture   = "paymentCapture"
	StepSegmentRefund    = "segmentRefund" // one per iteration: "segmentRefund:<n>", n from 1
	StepRefundApprove    = "refundApprove"
	StepRefundPay        = "refundPay"
	StepTicketRequest    = "ticketRequest"
	StepTicketRecord     = "ticketRecord"
	StepAmendmentConfirm = "amendmentConfirm"

	StepReservationConfirm = "reservationConfirm"
	StepExportPublish      = "exportPublish"
)
