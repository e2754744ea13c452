package envelope

import (
	"fmt"
	"strings"
)

// MaxAgents is how many different user agents there are.
const MaxAgents = 1_000_000

// agentNumber is user agent i, from 0 to MaxAgents - 1: the built-in ones, then
// made ones, whose sorts take turns too. No two are equal.
func agentNumber(i int) string {
	if i < len(agents) {
		return agents[i]
	}
	i -= len(agents)
	return clients[i%len(clients)].agent(i / len(clients))
}

// client is a sort of client, whose user agents differ in versions, devices and builds.
type client struct {
	format string // with a %s for each part
	parts  [][]string
	count  int
}

// scatter is a prime that divides no count of a client, so that a walk in steps of it comes to all of them.
const scatter = 1_000_003

// agent is user agent n of the client.
func (c *client) agent(n int) string {
	n = n * scatter % c.count
	said := make([]any, len(c.parts))
	for i, p := range c.parts {
		said[i] = p[n%len(p)]
		n /= len(p)
	}
	return fmt.Sprintf(c.format, said...)
}

// clients are those of which there are very many in the world: browsers say
// less and less of themselves (a desktop's Chrome one number), but phones tell their model, and programs
// that show web pages their own version and the full one of the browser in them.
//
// Note: the versions are of the years 2023 to 2025, Chrome's with the builds
// that they had. None of them is filtered by Relay's default rules, and none is a built-in one.
var clients = func() []client {
	words := func(text string) []string { return strings.Fields(text) }
	numbers := func(from, to, step int, format string) (out []string) {
		for i := from; i <= to; i += step {
			out = append(out, fmt.Sprintf(format, i))
		}
		return out
	}
	join := func(a, b []string, between string) (out []string) {
		for _, x := range a {
			for _, y := range b {
				out = append(out, x+between+y)
			}
		}
		return out
	}
	spaced := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, strings.ReplaceAll(s, "_", " "))
		}
		return out
	}
	chromes := words("120.0.6099 121.0.6167 122.0.6261 123.0.6312 124.0.6367 125.0.6422 126.0.6478 127.0.6533 128.0.6613 129.0.6668 130.0.6723 131.0.6778 " +
		"132.0.6834 133.0.6943 134.0.6998 135.0.7049 136.0.7103 137.0.7151 138.0.7204 139.0.7258 140.0.7339 141.0.7390 142.0.7444")
	chromes = join(chromes, numbers(28, 267, 1, "%d"), ".")
	androids := words("12 13 14 15 16")
	models := spaced(words("SM-S931B SM-S928B SM-S918U SM-A566B SM-A546E SM-A155F SM-A057G SM-G991B SM-X710 Pixel_6a Pixel_7 Pixel_8_Pro Pixel_9 Pixel_9_Pro_XL " +
		"23129RAA4G 2201117TY M2101K7BG 22101316G 24069PC21G CPH2581 CPH2655 V2322 V2250 RMX3890 RMX3771 moto_g85_5G moto_g_stylus_5G TECNO_KL5 Infinix_X6837 XQ-EC54"))
	builds := join(words("TP1A TQ3A UP1A UQ1A AP1A AP2A AP3A AP4A BP1A BP2A"), join(numbers(2304, 2312, 1, "%d05"), numbers(2, 16, 2, "%03d"), "."), ".")
	iphones := words("16_7_11 17_4_1 17_5_1 17_6_1 17_7 17_7_2 18_0 18_0_1 18_1 18_1_1 18_2 18_2_1 18_3 18_3_1 18_3_2 18_4 18_4_1 18_5 18_6 18_6_1 18_6_2 18_7_1 26_0 26_0_1 26_1")
	dotted := func(list []string) (out []string) {
		for _, s := range list {
			out = append(out, strings.ReplaceAll(s, "_", "."))
		}
		return out
	}
	apps := words("Outfits Delivery Banking Fitness Weather Recipes Parking Tickets Travel News Radio Podcasts Budget Garden Chess Library Scooter Pharmacy Grocery Notes")
	versions := join(numbers(1, 9, 1, "%d"), join(numbers(0, 24, 1, "%d"), numbers(0, 9, 1, "%d"), "."), ".")
	darwins := spaced(words("CFNetwork/1410.1_Darwin/22.6.0 CFNetwork/1474_Darwin/23.0.0 CFNetwork/1490.0.4_Darwin/23.2.0 CFNetwork/1494.0.7_Darwin/23.4.0 " +
		"CFNetwork/1498.700.2_Darwin/23.6.0 CFNetwork/1568.200.51_Darwin/24.1.0 CFNetwork/3826.500.111_Darwin/24.4.0 CFNetwork/3826.600.41_Darwin/24.6.0"))
	electrons := words("Code/1.95.3 Code/1.99.3 Code/1.103.1 Notion/4.7.2 Figma/125.4.9 Postman/11.20.0 Obsidian/1.8.10 GitHubDesktop/3.4.12 Signal/7.42.0 Discord/1.0.9188 Insomnia/10.3.1")

	const android, apple = "Mozilla/5.0 (Linux; Android %s; %s", "Mozilla/5.0 (iPhone; CPU iPhone OS %s like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
	list := []client{
		{format: android + ") AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%s Mobile Safari/537.36", parts: [][]string{androids, models, chromes}},
		{format: apple + "CriOS/%s Mobile/15E148 Safari/604.1", parts: [][]string{iphones, chromes}},
		{format: "%s/%s %s", parts: [][]string{apps, versions, darwins}},
		{format: android + " Build/%s; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/%s Mobile Safari/537.36", parts: [][]string{androids, models, builds, chromes}},
		{format: "%s/%s (com.example.app; build:%s; iOS %s) Alamofire/5.10.2", parts: [][]string{apps, versions, numbers(101, 899, 7, "%d"), dotted(iphones)}},
		{format: "Dalvik/2.1.0 (Linux; U; Android %s; %s Build/%s)", parts: [][]string{androids, models, join(builds, numbers(0, 1, 1, ".A%d"), "")}},
		{format: apple + "GSA/%s Mobile/15E148 Safari/604.1", parts: [][]string{iphones, join(numbers(300, 399, 1, "%d.0"), numbers(604_386_211, 824_386_211, 2_718_281, "%d"), ".")}},
		{format: "Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) %s Chrome/%s Electron/%s Safari/537.36",
			parts: [][]string{strings.Split("Windows NT 10.0; Win64; x64|Macintosh; Intel Mac OS X 10_15_7|X11; Linux x86_64", "|"), electrons, chromes, words("31.7.7 33.4.1 35.1.5 37.3.1")}},
	}
	for i := range list {
		list[i].count = 1
		for _, p := range list[i].parts {
			list[i].count *= len(p)
		}
	}
	return list
}()
