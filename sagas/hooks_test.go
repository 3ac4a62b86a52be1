package sagas

import (
	"sync"

	"github.com/vitrip/journeyman/internal/crash"
)

// hookOnce calls fn at the first hit of a crash point with this detail. Other tests run beside it: use ids of your own.
func hookOnce(point, want string, fn func()) (remove func()) {
	var once sync.Once
	return crash.Hook(point, func(detail string) {
		if detail == want {
			once.Do(fn)
		}
	})
}
