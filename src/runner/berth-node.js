/*
 * The JavaScript and TypeScript side of a code context. It runs in the sandbox, as one of its processes.
 *
 * Descriptor 3 brings one JSON object a line: {"code": ..., "env": {...}}. Descriptor 4 takes notes, one
 * JSON object a line: results and the error. Descriptor 5 takes the number of each run that has ended.
 * V8's own REPL mode does the rest: names stay from run to run and may be declared again, and `await`
 * works at the top. Static imports become dynamic ones, because a run is no module.
 *
 * `require` and `load` (import()) are the caller's.
 */
const fs = require('fs');
const net = require('net');
const util = require('util');
const vm = require('vm');
const inspector = require('inspector');

const REQUESTS = 3;
const NOTES = 4;
const DONE = 5;
const FORMAT_MAX = 4 << 20; // characters of one format of a result; a longer one is left out
const TEXT_MAX = 256 << 10; // characters of its text; a longer one is cut
const SHOW = Symbol.for('Jupyter.display');

const BY_TYPE = {
	'text/plain': 'text',
	'text/html': 'html',
	'text/markdown': 'markdown',
	'text/latex': 'latex',
	'image/svg+xml': 'svg',
	'image/png': 'png',
	'image/jpeg': 'jpeg',
	'application/json': 'json',
	'application/javascript': 'javascript',
	'application/vnd.berth.chart+json': 'chart',
	'application/vnd.plotly.v1+json': 'chart',
	'application/vnd.vegalite.v4+json': 'chart',
	'application/vnd.vegalite.v5+json': 'chart',
	'application/vnd.berth.data+json': 'data',
};

/* ---- words ---- */

// Text that every JSON reader takes: no half characters, no NUL.
function plain(text) {
	return Buffer.from(String(text), 'utf8').toString('utf8').replaceAll('\0', '\ufffd');
}

function writeAll(fd, data) {
	for (let at = 0; at < data.length; ) {
		try {
			at += fs.writeSync(fd, data, at);
		} catch (e) {
			if (e.code !== 'EAGAIN') throw e;
		}
	}
}

function note(members) {
	writeAll(NOTES, Buffer.from(JSON.stringify(members) + '\n'));
}

/* ---- results ---- */

// One format of a result as a string, or null if it is not what it says it is.
function shape(kind, value) {
	let text = value;
	try {
		if (kind === 'json' || kind === 'chart' || kind === 'data') text = JSON.stringify(value);
		else if (value instanceof Uint8Array) {
			const as = kind === 'png' || kind === 'jpeg' ? 'base64' : 'utf8';
			text = Buffer.from(value).toString(as);
		}
	} catch {
		return null;
	}
	return typeof text === 'string' && text.length <= FORMAT_MAX ? plain(text) : null;
}

function fromTypes(bundle) {
	const found = {};
	for (const [type, value] of Object.entries(bundle)) {
		const kind = Object.hasOwn(BY_TYPE, type) ? BY_TYPE[type] : undefined;
		const text = kind ? shape(kind, value) : null;
		if (text !== null) found[kind] = text;
	}
	return found;
}

function isPlain(value) {
	if (typeof value !== 'object' || value === null) return false;
	const proto = Object.getPrototypeOf(value);
	return Array.isArray(value) || proto === Object.prototype || proto === null;
}

// Everything the value can be shown as. A method of its that fails is as if it were not there.
async function formats(value) {
	let found = {};
	try {
		if (value && typeof value[SHOW] === 'function') found = fromTypes(await value[SHOW]());
		else if (isPlain(value)) {
			const text = shape('json', value);
			if (text !== null) found.json = text;
		}
	} catch {
		found = {};
	}
	if (found.text === undefined) {
		try {
			found.text = plain(util.inspect(value, { depth: 4 }));
		} catch (e) {
			found.text = `<it cannot be shown: ${plain(e && e.name)}>`;
		}
	}
	if (found.text.length > TEXT_MAX) {
		found.text = plain(found.text.slice(0, TEXT_MAX));
		found.truncated = true;
	}
	return found;
}

// Show a value as a result of this run. With {raw: true} it is an object of MIME types.
async function display(value, options = {}) {
	note({ type: 'result', main: false, ...(options.raw ? fromTypes(value) : await formats(value)) });
}

/* ---- imports ---- */

const BEFORE_REGEX = new Set(
	('return typeof instanceof in of new delete void throw case do else yield await').split(' '),
);
const SPACE = /(?:\s|\/\/[^\n]*|\/\*[^]*?\*\/)+/y;
const NAME =
	/#?(?:[\p{ID_Start}$_]|\\u(?:[\da-fA-F]{4}|\{[\da-fA-F]+\}))(?:[\p{ID_Continue}$\u200c\u200d]|\\u(?:[\da-fA-F]{4}|\{[\da-fA-F]+\}))*/uy;
const NUMBER = /(?:0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?[\d_]+)?)n?/y;
const STRING = /'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"/y;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[\p{ID_Continue}]*/uy;
const PUNCT = />>>=|\.\.\.|===|!==|\*\*=|<<=|>>=|>>>|&&=|\|\|=|\?\?=|=>|==|!=|<=|>=|&&|\|\||\?\?|\?\.(?!\d)|\+\+|--|\+=|-=|\*=|\/=|%=|&=|\|=|\^=|<<|>>|\*\*|[{}()[\];,<>+\-*/%&|^!~?:=.@]/y;

// The tokens of a text: {kind, text, at, end}. Null if it is none of JavaScript's: V8 will say why.
function tokens(code) {
	const list = [];
	const braces = []; // true: this { opened a piece of a template
	let at = 0;
	let template = false;
	const match = (re) => {
		re.lastIndex = at;
		const m = re.exec(code);
		return m && m[0];
	};
	const push = (kind, text) => {
		list.push({ kind, text, at, end: at + text.length });
		at += text.length;
	};
	const slashIsRegex = () => {
		const last = list[list.length - 1];
		if (!last) return true;
		if (last.kind === 'name') return BEFORE_REGEX.has(last.text);
		return last.kind === 'punct' && ![')', ']', '}'].includes(last.text);
	};
	while (at < code.length) {
		let text;
		if (template) {
			const m = /(?:[^`\\$]|\\[^]|\$(?!\{))*(?:`|\$\{)/y;
			if ((text = match(m)) === null) return null;
			push('template', text);
			template = false;
			if (text.endsWith('{')) braces.push(true);
		} else if ((text = match(SPACE)) !== null) at += text.length;
		else if ((text = match(NAME)) !== null) push('name', text);
		else if ((text = match(NUMBER)) !== null) push('number', text);
		else if ((text = match(STRING)) !== null) push('string', text);
		else if (code[at] === '`') {
			push('punct', '`');
			template = true;
		} else if (code[at] === '/' && slashIsRegex() && (text = match(REGEX)) !== null) push('regex', text);
		else if ((text = match(PUNCT)) !== null) {
			const inTemplate = text === '}' && braces.pop();
			if (text === '{') braces.push(false);
			push('punct', text);
			template = Boolean(inTemplate);
		} else return null;
	}
	return list;
}

// `import a, {b as c} from 'm'` from token i on: [what it becomes, where it ends], or null.
function staticImport(list, i) {
	const word = (k, text) => list[k] && list[k].text === text;
	const names = [];
	let k = i + 1;
	let space = null;
	if (list[k] && list[k].kind === 'name' && !word(k, 'from')) {
		names.push(`default: ${list[k].text}`);
		k += word(k + 1, ',') ? 2 : 1;
	}
	if (word(k, '*') && word(k + 1, 'as')) {
		space = list[k + 2].text;
		k += 3;
	} else if (word(k, '{')) {
		for (k++; list[k] && !word(k, '}'); k += word(k, ',') ? 1 : 0) {
			const from = list[k].text;
			const renamed = word(k + 1, 'as') && list[k + 2];
			names.push(renamed ? `${from}: ${list[k + 2].text}` : from);
			k += renamed ? 3 : 1;
		}
		k++;
	}
	if (k > i + 1 && !word(k, 'from')) return null;
	k += k > i + 1 ? 1 : 0;
	if (!list[k] || list[k].kind !== 'string') return null;
	const module = `await __berthImport(${list[k].text})`;
	if (word(k + 1, 'with') || word(k + 1, 'assert')) return null;
	let text = module;
	if (space) text = `const ${space} = ${module}`;
	if (names.length) text = `const { ${names.join(', ')} } = ${space ?? module}`;
	if (space && names.length) text = `const ${space} = ${module}, { ${names.join(', ')} } = ${space}`;
	return [text, word(k + 1, ';') ? list[k].end : list[k].end, word(k + 1, ';')];
}

function withoutImports(code) {
	const list = /\bimport\b/.test(code) ? tokens(code) : null;
	if (!list) return code;
	let out = '';
	let from = 0;
	let depth = 0;
	list.forEach((token, i) => {
		if (token.at < from) return;
		if (token.kind === 'punct') depth += '([{'.includes(token.text) ? 1 : ')]}'.includes(token.text) ? -1 : 0;
		const before = list[i - 1];
		if (token.text !== 'import' || token.kind !== 'name' || (before && ['.', '?.'].includes(before.text))) return;
		const next = list[i + 1];
		if (next && next.text === '(') {
			out += code.slice(from, token.at) + '__berthImport';
			from = token.end;
		} else if (depth === 0) {
			const made = staticImport(list, i);
			if (!made) return;
			const lines = code.slice(token.at, made[1]).split('\n').length - 1;
			out += code.slice(from, token.at) + made[0] + (made[2] ? '' : ';') + '\n'.repeat(lines);
			from = made[1];
		}
	});
	return out + code.slice(from);
}

/* ---- TypeScript ---- */

// The compiler, if the image has it; else Node's own way (22.13), else ours, which refuses what it cannot do.
function withoutTypes(code) {
	let ts = null;
	try {
		ts = require('typescript');
	} catch {
		ts = null;
	}
	if (ts) {
		const options = { module: 'esnext', target: 'es2022', verbatimModuleSyntax: true };
		return ts.transpileModule(code, { compilerOptions: options }).outputText;
	}
	const { stripTypeScriptTypes } = require('module');
	const warn = process.emitWarning;
	if (!stripTypeScriptTypes) return stripTypes(code);
	process.emitWarning = () => {}; // that it is experimental
	try {
		return stripTypeScriptTypes(code, { mode: 'transform' });
	} finally {
		process.emitWarning = warn;
	}
}

/* ---- runs ---- */

const session = new inspector.Session();
session.connect();

const ENTER = Symbol.for('berth.enter');
const TAKE = Symbol.for('berth.take');
let running = false;
let enter = null;
let taken;

function hidden(name, value) {
	Object.defineProperty(globalThis, name, { value, enumerable: false, configurable: true, writable: true });
}

hidden(ENTER, () => enter());
hidden(TAKE, (value) => {
	taken = value;
});
hidden('__berthImport', load);
hidden('display', display);

const entering = new vm.Script('globalThis[Symbol.for("berth.enter")]()', { filename: 'berth' });

function post(method, params) {
	return new Promise((resolve, reject) => {
		session.post(method, params, (e, result) => (e ? reject(e) : resolve(result)));
	});
}

// The value a remote object stands for.
async function valueOf(remote) {
	if (remote.objectId) {
		await post('Runtime.callFunctionOn', {
			objectId: remote.objectId,
			functionDeclaration: 'function () { globalThis[Symbol.for("berth.take")](this); }',
		});
		const value = taken;
		taken = undefined;
		return remote.type === 'symbol' ? value.valueOf() : value;
	}
	if (remote.type === 'bigint') return BigInt(remote.unserializableValue.slice(0, -1));
	if (remote.unserializableValue) return Number(remote.unserializableValue);
	return remote.subtype === 'null' ? null : remote.value;
}

// What is not of this program: neither its frames nor the promise it ran the code in.
function ownLines(stack) {
	const lines = stack
		.split('\n')
		.filter((line) => !/^\s+at .*(?:node:internal|node:inspector|node:vm|node:net|node:events|\(?berth:\d)/.test(line));
	while (/^\s+at new Promise \(<anonymous>\)$/.test(lines[lines.length - 1])) lines.pop();
	return lines;
}

// The line of this run that it was in, the innermost of several; 0 if none is known.
function lineOf(lines, details, name) {
	for (const line of lines) {
		const at = line.indexOf(`${name}:`);
		if (at >= 0) return parseInt(line.slice(at + name.length + 1), 10) || 0;
	}
	return details.url === name ? details.lineNumber + 1 : 0;
}

async function report(details, name) {
	const error = details.exception ? await valueOf(details.exception) : details.text;
	const isError = util.types.isNativeError(error) || error instanceof Error;
	let lines = isError && typeof error.stack === 'string' ? ownLines(error.stack) : [util.inspect(error)];
	const kind = isError ? String(error.name) : 'Error';
	if (kind === 'SyntaxError' && !lines.some((line) => line.includes(name)))
		lines.splice(1, 0, `    at ${name}:${details.lineNumber + 1}:${details.columnNumber + 1}`);
	const line_number = lineOf(isError ? lines : [], details, name);
	if (isError && error.cause !== undefined)
		lines = lines.concat(('Caused by: ' + util.inspect(error.cause)).split('\n'));
	note({
		type: 'error',
		name: plain(kind).slice(0, 200),
		message: plain(isError ? error.message : util.inspect(error)).slice(0, TEXT_MAX),
		traceback: lines.slice(0, 1000).map((line) => plain(line).slice(0, TEXT_MAX)),
		line_number,
	});
}

function evaluate(code, name) {
	return new Promise((resolve, reject) => {
		enter = () => {
			session.post(
				'Runtime.evaluate',
				{
					expression: `${code}\n//# sourceURL=${name}`,
					replMode: true,
					awaitPromise: true,
					objectGroup: 'run',
				},
				(e, result) => (e ? reject(e) : resolve(result)),
			);
		};
		try {
			entering.runInThisContext({ breakOnSigint: true });
		} catch (e) {
			reject(e);
		}
	});
}

async function execute(code, name) {
	const result = await evaluate(code, name);
	if (result.exceptionDetails) return report(result.exceptionDetails, name);
	const value = await valueOf(result.result);
	if (value !== undefined) note({ type: 'result', main: true, ...(await formats(value)) });
}

function complain(error, name) {
	const interrupted = error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
	if (error instanceof Refusal) {
		const message = `this TypeScript is not understood without its compiler: ${error.message}`;
		const fix = 'Write it in another way, or use an image with the npm package typescript, or with Node 22.13.';
		note({ type: 'error', name: 'Unsupported', message, traceback: [message, fix] });
		return;
	}
	note({
		type: 'error',
		name: interrupted ? 'Interrupted' : plain((error && error.name) || 'Error'),
		message: interrupted ? 'the run was interrupted' : plain((error && error.message) || error),
		traceback: [`${interrupted ? 'Interrupted' : plain(error)} in ${name}`],
	});
}

async function run(request, number) {
	const name = `run-${number}.js`;
	const before = {};
	for (const key of Object.keys(request.env)) before[key] = process.env[key];
	Object.assign(process.env, request.env);
	running = true;
	try {
		const code = language === 'typescript' ? withoutTypes(request.code) : request.code;
		await execute(withoutImports(code), name);
	} catch (e) {
		complain(e, name);
	}
	running = false;
	for (const [key, value] of Object.entries(before)) {
		if (value === undefined) delete process.env[key];
		else process.env[key] = value;
	}
	await post('Runtime.releaseObjectGroup', { objectGroup: 'run' }).catch(() => {});
	const done = Buffer.alloc(4);
	done.writeUInt32BE(number);
	writeAll(DONE, done);
}

// Code that waits cannot be stopped from here; it would go on behind everybody's back.
process.on('SIGINT', () => {
	if (running) process.exit(130);
});
process.on('uncaughtException', (error) => {
	writeAll(2, Buffer.from(`Uncaught ${util.inspect(error)}\n`));
});

const [language] = process.argv.splice(1);
let waiting = Promise.resolve();
let number = 0;
let rest = [];
const requests = new net.Socket({ fd: REQUESTS, readable: true, writable: false });
requests.on('data', (data) => {
	for (let eol; (eol = data.indexOf(10)) >= 0; data = data.subarray(eol + 1)) {
		const line = Buffer.concat([...rest, data.subarray(0, eol)]).toString();
		rest = [];
		waiting = waiting.then(() => run(JSON.parse(line), ++number));
	}
	rest.push(Buffer.from(data));
});
requests.on('error', () => process.exit(1));
requests.on('end', () => process.exit(0));
