package envelope

import "strings"

// vocabulary is what texts are made of: a rule's text is one of its phrases,
// in which {rule} is the text of another rule, # a digit from 1 to 9 and ^ a hex digit.
// It varies the text of payloads (functions, source lines, SQL, URLs, messages) as
// traffic does, so that compressors and parsers find no more repetition than there.
//
// Note: nothing in it may match Relay's inbound filters (localhost, health
// checks, errors of browser extensions): what is filtered is decided by the user agent alone.
var vocabulary = map[string][]string{
	"noun": {
		"account", "album", "alert", "asset", "audit", "badge", "basket", "bill", "booking", "bucket", "budget", "bundle",
		"campaign", "carrier", "cart", "catalog", "channel", "charge", "claim", "comment", "contract", "coupon", "course", "credit", "customer",
		"device", "digest", "discount", "document", "driver", "employee", "estimate", "event", "export", "feature", "feed", "folder",
		"fulfilment", "gift", "grant", "group", "holiday", "image", "import", "incident", "ingredient", "invoice", "journal", "label",
		"lead", "ledger", "listing", "location", "lookup", "mailbox", "manifest", "member", "menu", "message", "meter", "milestone", "note",
		"offer", "order", "package", "parcel", "partner", "payment", "payout", "permit", "photo", "plan", "playlist", "price", "product",
		"profile", "promotion", "quote", "rating", "receipt", "recipe", "refund", "region", "report", "reservation", "return", "review", "reward",
		"route", "schedule", "score", "seat", "segment", "shipment", "shop", "slot", "snapshot", "sprint", "station", "stock", "store", "stream",
		"subscription", "supplier", "survey", "tariff", "task", "team", "template", "tenant", "ticket", "tour", "track",
		"transfer", "trip", "upload", "vehicle", "vendor", "venue", "video", "visit", "voucher", "wallet", "warehouse", "webhook", "widget", "wishlist",
	},
	"verb": {
		"accept", "allocate", "apply", "archive", "assign", "attach", "authorize", "build", "calculate", "cancel", "capture", "check", "claim",
		"close", "collect", "commit", "compute", "confirm", "convert", "create", "decode", "defer", "delete", "dispatch", "encode", "enrich",
		"estimate", "evaluate", "expand", "export", "fetch", "filter", "find", "finish", "flush", "format", "get", "group", "handle", "import",
		"index", "invalidate", "issue", "join", "list", "load", "lock", "match", "merge", "migrate", "normalize", "notify", "open", "parse",
		"persist", "pick", "plan", "prepare", "process", "publish", "pull", "push", "queue", "read", "rebuild", "reconcile", "record", "refresh",
		"register", "release", "remove", "render", "renew", "replace", "reserve", "reset", "resolve", "restore", "retry", "revoke", "rotate",
		"route", "save", "schedule", "score", "send", "serialize", "settle", "sort", "split", "start", "store", "submit", "sync", "track",
		"translate", "unlock", "update", "validate", "verify", "void", "warm", "wrap", "write",
	},
	"adjective": {
		"active", "archived", "available", "batched", "billable", "blocked", "cached", "changed", "closed", "complete", "current", "daily",
		"default", "delayed", "draft", "due", "empty", "expired", "external", "failed", "final", "first", "foreign", "free", "frozen", "hidden",
		"idle", "inactive", "initial", "internal", "invalid", "large", "last", "late", "local", "manual", "merged", "missing", "monthly", "nested",
		"new", "next", "open", "optional", "overdue", "paid", "partial", "pending", "previous", "primary", "private", "public", "raw", "recent",
		"related", "remote", "saved", "secondary", "shared", "stale", "target", "temporary", "total", "unpaid", "unread", "urgent", "valid", "weekly",
	},
	"part": {
		"adapter", "aggregate", "backend", "builder", "cache", "checker", "client", "codec", "collector", "command", "controller", "dispatcher",
		"engine", "factory", "fetcher", "form", "gateway", "handler", "helper", "indexer", "loader", "locator", "manager", "mapper", "middleware",
		"model", "notifier", "parser", "pipeline", "planner", "policy", "presenter", "processor", "provider", "proxy", "query", "reader", "registry",
		"renderer", "repository", "resolver", "router", "rules", "runner", "scheduler", "schema", "selector", "serializer", "service", "session",
		"signal", "storage", "strategy", "tasks", "tracker", "validator", "view", "watcher", "worker", "writer",
	},
	"class":    {"{Noun}{Part}", "{Adjective}{Noun}", "{Noun}{Noun}{Part}", "{Adjective}{Noun}{Part}"},
	"function": {"{verb}_{noun}", "{verb}_{adjective}_{noun}", "_{verb}_{noun}_{part}", "{verb}", "on_{noun}_{verb}", "{noun}_{part}", "{verb}_{noun}s", "{verb}_or_{verb}"},
	"name": {"{noun}", "{noun}_id", "{adjective}_{noun}", "{noun}s", "{noun}_{part}", "{part}", "{adjective}_{noun}s", "{noun}_count", "limit", "offset",
		"cursor", "result", "payload", "key", "value", "now", "deadline", "attempt", "ctx", "options", "kwargs", "rows", "reply", "currency", "total"},
	"module": {"{noun}s.{part}", "{noun}s.{noun}_{part}", "core.{part}", "{noun}.api.v#.{noun}s", "{noun}.{part}.{adjective}", "lib.{noun}_{part}", "{noun}s.{part}s.{noun}"},
	"library": {"django.core.handlers.base", "django.core.handlers.exception", "django.db.backends.utils", "django.db.models.query", "django.db.models.sql.compiler",
		"django.utils.deprecation", "django.views.generic.base", "rest_framework.views", "rest_framework.serializers", "rest_framework.mixins",
		"flask.app", "flask.views", "werkzeug.routing.map", "jinja2.environment", "sqlalchemy.engine.base", "sqlalchemy.orm.session", "sqlalchemy.orm.query",
		"sqlalchemy.pool.base", "psycopg.cursor", "psycopg.connection", "redis.client", "redis.connection", "urllib3.connectionpool", "urllib3.response", "requests.sessions",
		"requests.adapters", "httpx._client", "httpcore._sync.connection", "celery.app.trace", "celery.worker.consumer", "kombu.messaging", "botocore.client",
		"botocore.endpoint", "grpc._channel", "starlette.routing", "starlette.middleware.errors", "fastapi.routing", "pydantic.main", "asyncio.tasks",
		"concurrent.futures.thread", "threading", "json.decoder", "contextlib", "functools", "stripe.api_requestor", "elasticsearch.transport", "boto3.session"},
	"value": {"{name}", "{name}.{name}", "self.{name}", "self.{noun}_{part}.{function}({name})", "{function}({name})", "{name}[\"{name}\"]", "'{adjective}'", "##",
		"None", "len({name})", "{name} or {name}", "{name}.get('{name}')", "{Class}({name}={name})", "f\"{noun}:{{name}}:##\"", "settings.{NAME}", "{name} + {name}", "Decimal('#.##')", "[{name} for {name} in {name}]"},
	"condition": {"{name} is None", "not {name}", "{name}.{name} > {value}", "{name} in {name}", "len({name}) > ##", "{name}.status == '{adjective}'", "{name} != {value}", "isinstance({name}, {Class})", "{name}.is_{adjective}", "self.{name} and not {name}"},
	"line": {
		"{name} = {value}", "{name} = self.{function}({name}, {name}={value})", "{name} = {Class}({name}, {name}={value})", "self.{name} = {value}",
		"if {condition}:", "if {condition} and {condition}:", "elif {condition}:", "for {name} in {value}:", "while {condition}:", "with self.{noun}_{part}.{verb}({name}) as {name}:",
		"return {value}", "return self.{function}({name}, {name})", "return {Class}({value}, {name}={value})", "yield {value}", "raise {Noun}Error(f\"{verb} {noun} {{name}}: {adjective}\")",
		"logger.info(\"{verb} {noun} %s for {noun} %s\", {name}, {name})", "logger.warning(\"{adjective} {noun}: %r\", {name})", "assert {condition}, \"{adjective} {noun}\"",
		"{name}.append({value})", "{name}[{value}] = {value}", "{name}.update({name}={value}, {name}={value})", "metrics.incr(\"{noun}.{verb}\", tags={\"{noun}\": {name}})",
		"def {function}(self, {name}, {name}=None):", "def {function}({name}: {Class}, *, {name}: int = ##) -> {Class}:", "class {Class}({Class}):", "@{noun}_{part}.{verb}(\"{noun}-{noun}\")",
		"try:", "else:", "]", ")", "}", "pass", "continue", "break", "return None", "return", "try:", "finally:", "", "", "else:", "return {name}", "{name} = {name}", "])", "({name})", "**{name},", "{name}={name},", "{value},", "except ({Noun}Error, {Noun}Timeout) as exc:", "\"\"\"{Verb} the {adjective} {noun} of a {noun}.\"\"\"", "{name}, {name} = self.{noun}_{part}.{function}({value})",
		"{name} = await self.{part}.{function}({name})", "", "",
		"{name} = {noun}s.filter({name}={value})", "cursor.execute({NAME}_SQL, [{value}, {value}])", "{name} = {name}.{function}(timeout=##, retries=#)",
	},
	"indent": {"    ", "        ", "            "},
	"source": {"{indent}{line}", "{indent}{line}", "{indent}{line}", "{indent}{line}"},
	"repr": {"'{adjective}'", "'{noun}-####'", "####", "##.##", "True", "False", "None", "'^^^^^^^^-^^^^-4^^^-a^^^-^^^^^^^^^^^^'", "<{Class} object at 0x7f^^^^^^^^^0>", "<{Class}: {noun} ####>",
		"['{noun}', '{noun}']", "datetime.datetime(2026, #, 1#, 1#, 2#, 3#)", "'{url}'", "Decimal('##.##')", "{'{name}': ##, '{name}': '{adjective}'}", "'{first}.{last}'", "b'\\x^^\\x^^\\x^^{noun}'"},

	"sql": {
		"SELECT {columns} FROM {noun}s WHERE {where} ORDER BY {noun}s.{column} DESC LIMIT ##", "SELECT {columns} FROM {noun}s INNER JOIN {noun}s ON {noun}s.{noun}_id = {noun}s.id WHERE {where}",
		"SELECT COUNT(*) FROM {noun}s WHERE {where} AND {where}", "UPDATE {noun}s SET {column} = %s, {column} = %s WHERE {where}", "INSERT INTO {noun}_{noun}s ({column}, {column}, {column}) VALUES (%s, %s, %s) RETURNING id",
		"DELETE FROM {noun}_{noun}s WHERE {where} AND created_at < %s", "SELECT {columns} FROM {noun}s LEFT OUTER JOIN {noun}_{noun}s ON {noun}_{noun}s.{noun}_id = {noun}s.id WHERE {where} AND {where} LIMIT ##",
		"SELECT {column}, SUM({noun}_total) FROM {noun}s WHERE {where} GROUP BY {column} HAVING SUM({noun}_total) > ####", "SELECT EXISTS (SELECT 1 FROM {noun}s WHERE {where})", "SELECT id FROM {noun}_queue WHERE state = '{adjective}' FOR UPDATE SKIP LOCKED LIMIT #",
	},
	"columns": {"*", "id, {column}, {column}", "{noun}s.id, {noun}s.{column}, {noun}s.{column}, {noun}s.{column}", "DISTINCT {column}", "{column}, {column}, {column}, {column}, {column}"},
	"column":  {"{noun}_id", "created_at", "updated_at", "{adjective}_at", "state", "{noun}_count", "{adjective}_{noun}", "name", "{noun}_total", "is_{adjective}", "currency", "position", "email", "slug", "tenant_id"},
	"where":   {"{noun}_id = %s", "{column} = %s", "tenant_id = ### AND {column} = %s", "{column} IN (%s, %s, %s)", "{column} IS NULL", "{column} BETWEEN %s AND %s", "{adjective}_at > now() - interval '## days'", "lower(name) LIKE '{noun}%'"},

	"host":   {"api.example.com", "www.example.com", "shop.example.net", "{noun}.example.org", "{noun}s.example.com", "{noun}-api.example.net"},
	"path":   {"/api/v#/{noun}s/####/", "/{noun}s/{adjective}", "/{noun}s/####/{noun}s/###", "/api/{noun}s/{verb}", "/v#/{noun}s/^^^^^^^^/{noun}", "/{noun}/{noun}-{noun}-####", "/internal/{noun}s/{verb}/####"},
	"route":  {"/api/v#/{noun}s/{id}/", "/{noun}s/{adjective}", "/{noun}s/{id}/{noun}s/{id}", "/api/{noun}s/{verb}", "/v#/{noun}s/{id}/{noun}", "/{noun}/{slug}", "/internal/{noun}s/{verb}/{id}"},
	"id":     {"{{noun}_id}"},
	"slug":   {"{{noun}_slug}"},
	"query":  {"page=#&per_page=##", "q={noun}+{noun}&sort=-{column}", "{noun}_id=####&include={noun}s,{noun}s", "token={secret}&{noun}=###", "from=2026-1#-1#&to=2026-1#-2#", "locale={locale}&{noun}={adjective}", "cursor=^^^^^^^^^^^^^^^^&limit=##"},
	"url":    {"https://{host}{path}", "https://{host}{path}?{query}"},
	"method": {"GET", "GET", "GET", "GET", "POST", "POST", "PUT", "PATCH", "DELETE"},
	"status": {"200", "200", "200", "200", "201", "204", "302", "400", "403", "404", "409", "422", "500", "502"},

	"message": {
		"could not {verb} {noun} ####: {adjective} {noun}", "{noun} ^^^^^^^^ is {adjective}, expected {adjective}", "{Verb} of {adjective} {noun} failed after ## attempts", "no {adjective} {noun} for {noun} {noun}-###",
		"invalid literal for int() with base 10: '{noun}-##'", "'{Class}' object has no attribute '{name}'", "connection to server at \"10.#.1##.##\", port 54## failed: {adjective} {noun}", "Expecting value: line # column ## (char ###)",
		"duplicate key value violates unique constraint \"{noun}s_{column}_key\"", "HTTPSConnectionPool(host='{host}', port=443): Read timed out. (read timeout=##)", "{Noun} limit of ### exceeded by {first}.{last}@example.com",
		"unsupported operand type(s) for +: '{Class}' and 'NoneType'", "{noun} {verb} took #.##s, more than the {adjective} limit of #s", "list index out of range in {verb} {noun}s", "{name}: value ##.## is not a {adjective} {noun}",
	},
	"log":        {"{verb} {noun} #### in ## ms", "{verb} ## {noun}s for {noun} ####", "{adjective} {noun}: {verb} by {first}.{last}", "{method} {path} {status} ###ms", "{noun} cache {verb}: ## hits, # misses", "retry # of {verb} {noun} in #.#s", "{message}", "{verb} {noun} #### for user {email}"},
	"exception":  {"ValueError", "TypeError", "KeyError", "AttributeError", "RuntimeError", "LookupError", "TimeoutError", "ConnectionError", "IntegrityError", "OperationalError", "JSONDecodeError", "ReadTimeout", "{Noun}Error", "{Noun}NotFound", "{Adjective}{Noun}Error", "{Noun}ConflictError"},
	"category":   {"httplib", "query", "redis", "{noun}s.{part}", "subprocess", "auth", "celery.{noun}"},
	"first":      {"ada", "ben", "carla", "dmitri", "elena", "farid", "grace", "hugo", "ines", "jonas", "katya", "liam", "mei", "noor", "olga", "pavel", "quinn", "rosa", "sven", "tara", "umar", "vera", "wim", "xenia", "yusuf", "zoe"},
	"last":       {"abbott", "bauer", "costa", "dubois", "eriksen", "fischer", "garcia", "haddad", "ivanov", "jensen", "kowalski", "larsen", "moreau", "nakamura", "okafor", "pereira", "quist", "rossi", "santos", "tanaka", "ueda", "varga", "weber", "yilmaz"},
	"email":      {"{first}.{last}@example.com", "{first}##@example.org", "{last}.{first}@example.net"},
	"ip":         {"203.0.113.##", "198.51.100.##", "192.0.2.1##", "203.0.113.1##", "2001:db8:^^^^:^^^^::^^^^"},
	"card":       {"4#############9#", "54##########1###", "4111 11## #### ####", "37#############"},
	"secret":     {"^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^", "sk_live_^^^^^^^^^^^^^^^^^^^^^^^^", "eyJhbGciOiJIUzI1NiJ9.^^^^^^^^^^^^^^^^^^^^.^^^^^^^^^^^^^^^^", "ghp_^^^^^^^^^^^^^^^^^^^^^^^^^^^^"},
	"locale":     {"en-US", "en-GB", "de-DE", "fr-FR", "es-ES", "pt-BR", "ja-JP", "nl-NL", "sv-SE", "pl-PL", "it-IT", "tr-TR", "ko-KR", "zh-TW"},
	"zone":       {"UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Sao_Paulo", "Asia/Tokyo", "Australia/Sydney", "America/Los_Angeles"},
	"server":     {"web-##", "{noun}-api-^^^^^^^^^-^^^^^", "ip-10-#-1##-##", "worker-{noun}-#"},
	"deployment": {"production", "production", "production", "production", "staging", "canary", "eu-west"},
	"cron":       {"*/# * * * *", "1# * * * *", "4# # * * *", "2# 1# * * 1-5", "0 # * * *"},
	"device":     {"iPhone1#,#", "Pixel # Pro", "SM-S9##B", "iPad1#,#", "moto g##", "CPH2###"},
}

// say is a text of the rule: see [vocabulary].
func (m *Maker) say(rule string) string {
	var b strings.Builder
	m.expand(&b, m.pick(rule))
	return b.String()
}

// fewWords is how many of a rule's words one envelope uses: a program has its
// own words, which its modules, functions, lines and tables repeat.
var fewWords = map[string]int{"noun": 16, "verb": 12, "adjective": 9, "part": 8, "library": 6, "name": 12, "class": 6, "function": 18, "module": 7, "host": 4}

// choose chooses the words of the envelope: whole phrases where the rule is
// one of words, and texts where it is made of other rules.
func (m *Maker) choose() {
	m.words = make(map[string][]string, len(fewWords))
	for _, rule := range []string{"noun", "verb", "adjective", "part", "library", "name", "class", "function", "module", "host"} {
		few := make([]string, fewWords[rule])
		for i := range few {
			few[i] = m.say(rule)
		}
		m.words[rule] = few
	}
}

// pick is one phrase of the rule.
func (m *Maker) pick(rule string) string {
	phrases := m.words[rule]
	if phrases == nil {
		phrases = vocabulary[rule]
	}
	return phrases[m.Rand.IntN(len(phrases))]
}

// expand writes the text of a phrase. A rule named in capitals gives capitals.
func (m *Maker) expand(b *strings.Builder, phrase string) {
	for i := 0; i < len(phrase); i++ {
		switch c := phrase[i]; c {
		case '#':
			b.WriteByte(byte('1' + m.Rand.IntN(9)))
		case '^':
			b.WriteByte(hexDigits[m.Rand.IntN(16)])
		case '{':
			end := strings.IndexByte(phrase[i:], '}')
			if end < 0 {
				b.WriteByte(c)
				continue
			}
			name := phrase[i+1 : i+end]
			lower := strings.ToLower(name)
			if vocabulary[lower] == nil {
				b.WriteByte(c)
				continue
			}
			i += end
			switch text := m.say(lower); {
			case name == lower:
				b.WriteString(text)
			case name == strings.ToUpper(name):
				b.WriteString(strings.ToUpper(text))
			default:
				b.WriteString(strings.ToUpper(text[:1]) + text[1:])
			}
		default:
			b.WriteByte(c)
		}
	}
}
