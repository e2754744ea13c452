package envelope

import "time"

// golden is 2^64 divided by the golden ratio, the step of splitmix64.
const golden = 0x9e3779b97f4a7c15

// mix64 is the output function of splitmix64: a one-to-one map of 64 bits, so
// distinct numbers stay distinct.
func mix64(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// draw is number n of the stream that seed and salt name; distinct for distinct n.
func draw(seed, salt, n uint64) uint64 {
	return mix64(mix64(seed+salt*golden) + n*golden)
}

// putUUID writes the 32 hex digits of a random UUID (version 4) over dst. It
// keeps all 64 bits of v, so distinct values give distinct ids.
func putUUID(dst []byte, v uint64) {
	putHex(dst[:16], v)
	low := mix64(v ^ golden)
	// The digit that gives way to the version comes back in the lower half.
	low = low&^(0xff<<56) | 8<<60 | v>>12&15<<56
	putHex(dst[16:32], low)
	dst[12] = '4'
}

// putDashed writes a UUID with its dashes, 36 characters, over dst.
func putDashed(dst []byte, v uint64) {
	putUUID(dst[4:36], v)
	copy(dst[0:8], dst[4:12])
	dst[8] = '-'
	copy(dst[9:13], dst[12:16])
	dst[13] = '-'
	copy(dst[14:18], dst[16:20])
	dst[18] = '-'
	copy(dst[19:23], dst[20:24])
	dst[23] = '-'
}

// timeLen is the length of a time as [putTime] writes it.
const timeLen = len("2006-01-02T15:04:05.000Z")

// putTime writes a time given in milliseconds since 1970 (UTC) over dst, in
// RFC 3339 with three digits of the second.
//
// Note: by hand, as it runs once a send: a third of the cost of
// [time.Time.AppendFormat]. The calendar is that of
// https://howardhinnant.github.io/date_algorithms.html (civil_from_days).
func putTime(dst []byte, ms int64) {
	day := ms / 86_400_000
	rest := ms % 86_400_000
	if rest < 0 {
		day, rest = day-1, rest+86_400_000
	}
	z := day + 719_468
	era := z / 146_097
	if z < 0 {
		era = (z - 146_096) / 146_097
	}
	doe := z - era*146_097
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	month := mp + 3
	year := yoe + era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	_ = dst[timeLen-1]
	putDecimal(dst[0:4], year)
	dst[4] = '-'
	putDecimal(dst[5:7], month)
	dst[7] = '-'
	putDecimal(dst[8:10], doy-(153*mp+2)/5+1)
	dst[10] = 'T'
	putDecimal(dst[11:13], rest/3_600_000)
	dst[13] = ':'
	putDecimal(dst[14:16], rest/60_000%60)
	dst[16] = ':'
	putDecimal(dst[17:19], rest/1000%60)
	dst[19] = '.'
	putDecimal(dst[20:23], rest%1000)
	dst[23] = 'Z'
}

func putDecimal(dst []byte, v int64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
}

// stampTime is t as payloads have it: RFC 3339 in UTC with microseconds, as sentry-sdk writes it.
func stampTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }
