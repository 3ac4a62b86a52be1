package operator

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Money is an amount in minor units (cents) of a currency. The zero value means that no amount is known.
type Money struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"` // ISO 4217
}

// parseMoney reads what worker.Amount recorded; nil when there is none.
func parseMoney(raw json.RawMessage) (*Money, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil //nolint:nilnil // no amount and no error
	}
	var m Money
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("amount of a step: %w", err)
	}
	return &m, nil
}

// String gives "1250.00 EUR". Currencies without two decimals are shown in minor units.
func (m Money) String() string {
	switch m.Currency {
	case "":
		return ""
	case "BHD", "BIF", "CLP", "DJF", "GNF", "IQD", "ISK", "JOD", "JPY", "KMF", "KRW", "KWD", "LYD", "OMR", "PYG", "RWF", "TND", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return strconv.FormatInt(m.Minor, 10) + " minor units " + m.Currency
	}
	sign, n := "", uint64(m.Minor) //nolint:gosec // the sign is taken off below
	if m.Minor < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d %s", sign, n/100, n%100, m.Currency)
}
