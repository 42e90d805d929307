'use strict';
/*
 * TypeScript to JavaScript: a parser that finds what is only type, and puts spaces there, so that lines
 * and columns stay. Only enums and properties made from parameters are written anew. What it does not understand it
 * refuses: decorators, namespaces, `import x = ...`, computed enums. It never guesses.
 */
class Refusal extends Error {}

const WORD =
	/(?:[\p{ID_Start}$_]|\\u(?:[\da-fA-F]{4}|\{[\da-fA-F]+\}))(?:[\p{ID_Continue}$\u200c\u200d]|\\u(?:[\da-fA-F]{4}|\{[\da-fA-F]+\}))*/uy;
const BLANKS = /(?:\s|\/\/[^\n\u2028\u2029]*|\/\*[^]*?\*\/)+/y;
const DIGITS = /(?:0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?[\d_]+)?)n?/y;
const QUOTED = /'(?:[^'\\\n]|\\[^])*'|"(?:[^"\\\n]|\\[^])*"/y;
const PATTERN = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[\p{ID_Continue}]*/uy;
const PIECE = /(?:[^`\\$]|\\[^]|\$(?!\{))*(?:`|\$\{)/y;
// `>` is always alone: it may end type arguments.
const SIGNS =
	/\.\.\.|===|!==|\*\*=|<<=|&&=|\|\|=|\?\?=|=>|==|!=|<=|&&|\|\||\?\?|\?\.(?!\d)|\+\+|--|\+=|-=|\*=|\/=|%=|&=|\|=|\^=|<<|\*\*|[{}()[\];,<>+\-*/%&|^!~?:=.@#]/y;

const BINARY = new Set(
	'+ - * / % ** << < <= == != === !== && || ?? & | ^ = += -= *= /= %= **= <<= &= |= ^= &&= ||= ??='.split(' '),
);
const PREFIX = new Set('! ~ + - ++ -- typeof void delete await new'.split(' '));
const MODIFIERS = new Set(
	'public private protected readonly abstract override declare static async get set accessor'.split(' '),
);
const ONLY_TYPES = new Set('public private protected readonly abstract override declare'.split(' '));
const NO_NAMES = new Set(
	('break case catch class const continue debugger default delete do else export extends finally for function if ' +
		'import in instanceof new return super switch throw try typeof var void while with').split(' '),
);
const CONTINUES = new Set(['(', '[', '`', '+', '-', '*', '/', '.', ',', '<', '?', '&', '|', '%', '^', '=', '/=']);

class TypeStripper {
	constructor(code) {
		this.code = code;
		this.edits = []; // [from, to, text instead, or null for blanks, whether line ends go too]
		this.failed = new Set(); // where no arrow function begins
		this.inTrue = false; // between the ? and the : of a condition
		this.end = 0; // of the token before
		this.tok = null;
		this.lex(0);
	}

	/* ---- tokens ---- */

	match(re, at) {
		re.lastIndex = at;
		const m = re.exec(this.code);
		return m && m[0];
	}

	lex(from) {
		const space = this.match(BLANKS, from) ?? '';
		const at = from + space.length;
		const line = from === 0 || /[\n\u2028\u2029]/.test(space);
		let kind = 'end';
		let text = '';
		if (at < this.code.length) {
			for (const [name, re] of [
				['name', WORD],
				['number', DIGITS],
				['string', QUOTED],
				['sign', SIGNS],
			]) {
				const found = this.match(re, at);
				if (found !== null) {
					kind = name;
					text = found;
					break;
				}
			}
			if (kind === 'end' && this.code[at] === '`') [kind, text] = ['sign', '`'];
			if (kind === 'end') this.refuse('this character', at);
		}
		this.tok = { kind, text, at, end: at + text.length, line };
	}

	next() {
		const taken = this.tok;
		this.end = taken.end;
		this.lex(taken.end);
		return taken;
	}

	is(text) {
		return this.tok.text === text && this.tok.kind !== 'string';
	}

	eat(text) {
		return this.is(text) ? this.next() : null;
	}

	want(text) {
		if (!this.is(text)) this.refuse(`"${this.tok.text || 'the end'}" where "${text}" was expected`);
		return this.next();
	}

	refuse(what, at = this.tok.at) {
		const line = this.code.slice(0, at).split('\n').length;
		throw new Refusal(`${what}, in line ${line}`);
	}

	isName() {
		return this.tok.kind === 'name' && !NO_NAMES.has(this.tok.text);
	}

	name() {
		if (!this.isName()) this.refuse(`"${this.tok.text}" where a name was expected`);
		return this.next();
	}

	/* A look ahead that leaves no trace. */
	peek(look) {
		const { tok, end } = this;
		const edits = this.edits.length;
		try {
			return look();
		} finally {
			this.edits.length = edits;
			[this.tok, this.end] = [tok, end];
		}
	}

	/* Either it works, or it is as if it had not been tried. */
	attempt(way) {
		const { tok, end, inTrue } = this;
		const edits = this.edits.length;
		try {
			const result = way();
			if (result) return result;
		} catch (e) {
			if (!(e instanceof Refusal)) throw e;
		}
		this.edits.length = edits;
		[this.tok, this.end, this.inTrue] = [tok, end, inTrue];
		return null;
	}

	after(look) {
		return this.peek(() => {
			this.next();
			return look(this.tok);
		});
	}

	blank(from, to = this.end, lines = false) {
		if (to > from) this.edits.push([from, to, null, lines]);
	}

	/* ---- types: only where they end matters ---- */

	balanced(open, close) {
		this.want(open);
		for (let depth = 1; depth > 0; ) {
			if (this.tok.kind === 'end') this.refuse(`"${open}" that is not closed`);
			if (this.is('`')) {
				this.template();
				continue;
			}
			const { text, kind } = this.next();
			if (kind !== 'sign') continue;
			if (text === open) depth++;
			else if (text === close) depth--;
		}
	}

	type() {
		if (this.is('asserts') && this.after((t) => t.kind === 'name' && !t.line && t.text !== 'is')) {
			this.next();
			this.next();
			if (!this.eat('is')) return;
		} else if (this.tok.kind === 'name' && this.after((t) => t.text === 'is' && !t.line)) {
			this.next();
			this.next();
		}
		this.union();
		if (this.is('extends') && !this.tok.line) {
			this.next();
			const before = this.noCondition;
			this.noCondition = true;
			this.union();
			this.noCondition = before;
			this.want('?');
			this.type();
			this.want(':');
			this.type();
		}
	}

	union() {
		this.eat('|') ?? this.eat('&');
		do this.unary();
		while (this.eat('|') ?? this.eat('&'));
	}

	unary() {
		if (['keyof', 'unique', 'readonly'].includes(this.tok.text) && this.tok.kind === 'name') {
			if (this.after((t) => t.kind !== 'sign' || '({[`'.includes(t.text))) {
				this.next();
				return this.unary();
			}
		}
		if (this.is('infer') && this.after((t) => t.kind === 'name')) {
			this.next();
			this.next();
			this.attempt(() => {
				this.want('extends');
				this.union();
				return this.noCondition || !this.is('?');
			});
			return undefined;
		}
		this.primaryType();
		while (this.is('[') && !this.tok.line) this.balanced('[', ']');
		return undefined;
	}

	functionType() {
		if (this.is('<')) this.typeParameters();
		this.balanced('(', ')');
		this.want('=>');
		this.type();
	}

	primaryType() {
		const { kind, text } = this.tok;
		if (kind === 'string' || kind === 'number') return this.next();
		if (text === '-') {
			this.next();
			if (this.tok.kind !== 'number') this.refuse('this type');
			return this.next();
		}
		if (text === '`') return this.template();
		if (text === '{') return this.balanced('{', '}');
		if (text === '[') return this.balanced('[', ']');
		if (text === '<') return this.functionType();
		if (text === '(') {
			this.balanced('(', ')');
			if (this.eat('=>')) this.type();
			return undefined;
		}
		if (kind !== 'name') this.refuse(`"${text || 'the end'}" where a type was expected`);
		if ((text === 'new' || text === 'abstract') && this.after((t) => ['(', '<', 'new'].includes(t.text))) {
			if (text === 'abstract') this.next();
			this.want('new');
			return this.functionType();
		}
		if (text === 'typeof') this.next();
		if (this.eat('import')) this.balanced('(', ')');
		else if (this.tok.kind === 'name' && (!NO_NAMES.has(this.tok.text) || this.is('void'))) this.next();
		else this.refuse(`"${this.tok.text}" where a type was expected`);
		while (this.eat('.')) this.next();
		if (this.is('<') && !this.tok.line) this.typeArguments();
		return undefined;
	}

	typeArguments() {
		this.want('<');
		do {
			if (this.is('>')) break;
			this.type();
		} while (this.eat(','));
		this.want('>');
	}

	typeParameters() {
		this.want('<');
		do {
			if (this.is('>')) break;
			while (['const', 'in', 'out'].includes(this.tok.text) && this.after((t) => t.kind === 'name')) this.next();
			this.name();
			if (this.eat('extends')) this.type();
			if (this.eat('=')) this.type();
		} while (this.eat(','));
		this.want('>');
	}

	blankTypeParameters(lines = false) {
		if (!this.is('<')) return;
		const from = this.tok.at;
		this.typeParameters();
		this.blank(from, this.end, lines);
	}

	annotation(lines = false) {
		if (!this.is(':')) return false;
		const from = this.tok.at;
		this.next();
		this.type();
		this.blank(from, this.end, lines);
		return true;
	}

	/* ---- patterns and functions ---- */

	binding() {
		if (this.is('{')) {
			this.next();
			while (!this.is('}')) {
				if (this.eat('...')) this.binding();
				else {
					this.propertyName();
					if (this.eat(':')) this.binding();
				}
				if (this.eat('=')) this.plainly(() => this.assign());
				if (!this.eat(',')) break;
			}
			this.want('}');
		} else if (this.is('[')) {
			this.next();
			while (!this.is(']')) {
				if (this.eat(',')) continue;
				this.eat('...');
				this.binding();
				if (this.eat('=')) this.plainly(() => this.assign());
				if (!this.is(']')) this.want(',');
			}
			this.want(']');
		} else this.name();
	}

	parameters() {
		const made = this.made;
		this.made = null;
		this.want('(');
		while (!this.is(')')) {
			if (this.is('@')) this.refuse('decorators');
			if (this.is('this')) {
				const from = this.next().at;
				this.annotation();
				this.eat(',');
				this.blank(from);
				continue;
			}
			while (ONLY_TYPES.has(this.tok.text) && this.after((t) => t.kind === 'name' || t.text === '{' || t.text === '[')) {
				if (!made) this.refuse('properties made from parameters here');
				this.blank(this.next().at);
				if (!ONLY_TYPES.has(this.tok.text)) made.push(this.tok.text);
			}
			this.eat('...');
			this.binding();
			if (this.is('?')) this.blank(this.next().at);
			this.annotation();
			if (this.eat('=')) this.plainly(() => this.assign());
			if (!this.is(')')) this.want(',');
		}
		this.want(')');
	}

	/* True if it has a body. */
	signature() {
		this.blankTypeParameters();
		this.parameters();
		this.annotation();
		return this.is('{');
	}

	/* Without what is only true of the place we are in. */
	plainly(what) {
		const before = this.inTrue;
		this.inTrue = false;
		const result = what();
		this.inTrue = before;
		return result;
	}

	block() {
		this.want('{');
		this.plainly(() => {
			while (!this.is('}')) this.statement();
		});
		this.want('}');
	}

	functionRest() {
		this.eat('*');
		if (this.isName() && !this.is('(')) this.next();
		return this.signature();
	}

	arrowBody() {
		if (this.is('{')) this.block();
		else this.assign();
	}

	/* (a: T): R => ..., with or without async and type parameters. */
	arrow() {
		const from = this.tok.at;
		if (this.failed.has(`${from} ${this.inTrue}`)) return false;
		const done = this.attempt(() => {
			if (this.is('async')) this.next();
			if (this.tok.line && this.end > from) return false;
			if (this.is('<')) {
				const at = this.tok.at;
				this.typeParameters();
				this.blank(at, this.end, true);
				if (this.tok.line) return false;
			}
			this.parameters();
			const typed = this.annotation(true);
			if (!this.is('=>') || this.tok.line) return false;
			this.next();
			this.arrowBody();
			return !typed || !this.inTrue || this.is(':');
		});
		if (!done) this.failed.add(`${from} ${this.inTrue}`);
		return Boolean(done);
	}

	/* ---- expressions ---- */

	expression() {
		do this.assign();
		while (this.eat(','));
	}

	assign() {
		if (this.is('yield')) {
			this.next();
			this.eat('*');
			if (this.tok.line || [')', ']', '}', ',', ';', ':', ''].includes(this.tok.text)) return;
			return void this.assign();
		}
		if (this.tok.kind === 'name' && !NO_NAMES.has(this.tok.text) && this.after((t) => t.text === '=>' && !t.line)) {
			this.next();
			this.next();
			return void this.arrowBody();
		}
		if ((this.is('(') || this.is('<') || (this.is('async') && this.after((t) => '(<'.includes(t.text) && !t.line && t.text))) && this.arrow())
			return;
		if (this.is('async') && this.after((t) => t.kind === 'name' && !t.line && t.text !== 'function')) {
			if (this.peek(() => (this.next(), this.next(), this.is('=>')))) {
				this.next();
				this.next();
				this.next();
				return void this.arrowBody();
			}
		}
		this.unaryExpression();
		while (this.operator());
	}

	/* One operator and what is behind it; false if the expression is over. */
	operator() {
		const { kind, text, line, at } = this.tok;
		if (kind === 'name') {
			if ((text === 'as' || text === 'satisfies') && !line) {
				this.next();
				if (!this.eat('const')) this.type();
				this.blank(at);
				return true;
			}
			if ((text === 'in' && !this.noIn) || text === 'instanceof') {
				this.next();
				this.unaryExpression();
				return true;
			}
			return false;
		}
		if (kind !== 'sign') return false;
		if (text === '?') {
			this.next();
			const [before, noIn] = [this.inTrue, this.noIn];
			[this.inTrue, this.noIn] = [true, false];
			this.assign();
			[this.inTrue, this.noIn] = [before, noIn];
			this.want(':');
			this.assign();
			return false;
		}
		if (text === '>') {
			do this.next();
			while ((this.is('>') || this.is('=') || this.is('==')) && this.tok.at === this.end);
			this.assignOperand();
			return true;
		}
		if (!BINARY.has(text)) return false;
		this.next();
		this.assignOperand();
		return true;
	}

	/* Behind an assignment there may be an arrow function; behind others it is a syntax error, V8's to tell. */
	assignOperand() {
		const before = this.end;
		if (this.code[before - 1] === '=') this.assign();
		else this.unaryExpression();
	}

	unaryExpression() {
		const { text, kind } = this.tok;
		if ((kind === 'sign' || kind === 'name') && PREFIX.has(text)) {
			if (text === 'new' && this.after((t) => t.text === '.')) {
				this.next();
				this.next();
				this.next();
				return void this.postfix();
			}
			this.next();
			return void this.unaryExpression();
		}
		if (text === '<') {
			const at = this.tok.at;
			if (this.after((t) => t.text === 'const')) {
				this.next();
				this.next();
				this.want('>');
			} else this.typeArguments();
			if (this.tok.line) this.refuse('a line end behind a type assertion');
			this.blank(at, this.end, true);
			return void this.unaryExpression();
		}
		this.primary();
		this.postfix();
	}

	/* Type arguments, if that is what TypeScript itself would take it for. */
	callTypes() {
		return this.attempt(() => {
			const at = this.tok.at;
			this.typeArguments();
			this.blank(at);
			const { text, kind, line } = this.tok;
			if (text === '(' || text === '`') return true;
			if (['<', '>', '+', '-'].includes(text) && kind === 'sign') return false;
			if (line || kind === 'end') return true;
			return kind === 'sign' && !['{', '[', '!', '~', '++', '--', '/', '#', '@'].includes(text);
		});
	}

	postfix() {
		for (;;) {
			const { text, kind, line } = this.tok;
			if (kind !== 'sign') return;
			if (text === '.') {
				this.next();
				this.eat('#');
				if (this.tok.kind !== 'name') this.refuse('this member');
				this.next();
			} else if (text === '?.') {
				this.next();
				if (this.eat('#') || this.tok.kind === 'name') this.next();
				else if (this.is('<') && !this.callTypes()) this.refuse('this call');
			} else if (text === '[') {
				this.next();
				this.inside(() => this.expression());
				this.want(']');
			} else if (text === '(') this.callArguments();
			else if (text === '`') this.template();
			else if (text === '!' && !line) this.blank(this.next().at);
			else if ((text === '++' || text === '--') && !line) this.next();
			else if (text === '<' && this.callTypes()) continue;
			else return;
		}
	}

	inside(what) {
		const noIn = this.noIn;
		this.noIn = false;
		this.plainly(what);
		this.noIn = noIn;
	}

	callArguments() {
		this.want('(');
		this.inside(() => {
			while (!this.is(')')) {
				this.eat('...');
				this.assign();
				if (!this.is(')')) this.want(',');
			}
		});
		this.want(')');
	}

	template() {
		let at = this.tok.at + 1;
		for (;;) {
			const piece = this.match(PIECE, at);
			if (piece === null) this.refuse('a template that is not closed');
			at += piece.length;
			this.end = at;
			this.lex(at);
			if (piece.endsWith('`')) return;
			this.inside(() => this.expression());
			if (!this.is('}')) this.refuse('a template that is not closed');
			at = this.tok.end;
		}
	}

	primary() {
		const { kind, text, at } = this.tok;
		if (kind === 'string' || kind === 'number') return this.next();
		if (kind === 'end') this.refuse('the end of the code where a value was expected');
		if (text === '`') return this.template();
		if (text === '(') {
			this.next();
			this.inside(() => this.expression());
			return this.want(')');
		}
		if (text === '[') {
			this.next();
			this.inside(() => {
				while (!this.is(']')) {
					if (this.eat(',')) continue;
					this.eat('...');
					this.assign();
					if (!this.is(']')) this.want(',');
				}
			});
			return this.want(']');
		}
		if (text === '{') return this.objectLiteral();
		if (text === '/' || text === '/=') {
			const regex = this.match(PATTERN, at);
			if (regex === null) this.refuse('a "/" where a value was expected');
			this.end = at + regex.length;
			return this.lex(this.end);
		}
		if (text === '#') {
			this.next();
			return this.next();
		}
		if (text === '@') this.refuse('decorators');
		if (kind !== 'name') this.refuse(`"${text}" where a value was expected`);
		if (text === 'function' || (text === 'async' && this.after((t) => t.text === 'function' && !t.line))) {
			this.eat('async');
			this.next();
			if (!this.functionRest()) this.refuse('a function without a body');
			return this.block();
		}
		if (text === 'class') return this.classRest();
		if (NO_NAMES.has(text) && !['super', 'import'].includes(text)) this.refuse(`"${text}" where a value was expected`);
		return this.next();
	}

	propertyName() {
		if (this.is('[')) {
			this.next();
			this.inside(() => this.assign());
			return this.want(']');
		}
		this.eat('#');
		if (!['name', 'string', 'number'].includes(this.tok.kind)) this.refuse(`"${this.tok.text}" where a name was expected`);
		return this.next();
	}

	objectLiteral() {
		this.want('{');
		this.inside(() => {
			while (!this.is('}')) {
				if (this.eat('...')) this.assign();
				else this.property();
				if (!this.is('}')) this.want(',');
			}
		});
		this.want('}');
	}

	property() {
		while (
			['async', 'get', 'set'].includes(this.tok.text) &&
			this.after((t) => !['(', ':', ',', '}', '=', '<'].includes(t.text) || t.kind === 'string')
		)
			this.next();
		this.eat('*');
		this.propertyName();
		if (this.is('(') || this.is('<')) {
			if (!this.signature()) this.refuse('a method without a body');
			this.block();
		} else if (this.eat(':') || this.eat('=')) this.assign();
	}

	/* ---- classes ---- */

	classRest() {
		this.want('class');
		if (this.isName() && !this.is('implements')) this.next();
		this.blankTypeParameters();
		const outer = [this.derived, this.usesThis, this.makes];
		[this.derived, this.usesThis, this.makes] = [this.is('extends'), false, false];
		if (this.eat('extends')) {
			this.primary();
			for (;;) {
				if (this.is('<')) {
					const at = this.tok.at;
					this.typeArguments();
					this.blank(at);
				} else if (this.is('{')) break;
				else if (this.is('.') || this.is('(') || this.is('[') || this.is('?.')) this.postfix();
				else break;
			}
		}
		if (this.is('implements')) {
			const at = this.next().at;
			do this.type();
			while (this.eat(','));
			this.blank(at);
		}
		this.want('{');
		this.inside(() => {
			while (!this.is('}')) this.member();
		});
		// Which of the two comes first depends on the compiler's settings.
		if (this.usesThis && this.makes) this.refuse('fields that use properties made from parameters');
		[this.derived, this.usesThis, this.makes] = outer;
		this.want('}');
	}

	/* All of it is type: a semicolon stays, so that what is around it does not grow together. */
	gone(from) {
		this.edits.push([from, from + 1, ';', false]);
		this.blank(from + 1);
	}

	member() {
		if (this.eat(';')) return;
		if (this.is('@')) this.refuse('decorators');
		const from = this.tok.at;
		let [isGone, real, first] = [false, false, true];
		const names = (t) => !['(', '=', ';', ':', '?', '!', '}', '<', ','].includes(t.text) || t.kind === 'string';
		while (MODIFIERS.has(this.tok.text) && this.tok.kind === 'name' && this.after((t) => t.kind !== 'end' && names(t))) {
			if (this.is('static') && this.after((t) => t.text === '{')) {
				this.next();
				return void this.block();
			}
			const { text, at } = this.next();
			if (!ONLY_TYPES.has(text)) {
				real = true;
				if (this.tok.line && text !== 'static') return; // a field of that name
				continue;
			}
			if (text === 'abstract' || text === 'declare') isGone = true;
			if (first && !real) this.edits.push([at, at + 1, ';', false]);
			this.blank(first && !real ? at + 1 : at);
			first = false;
		}
		this.eat('*');
		if (this.is('[') && this.peek(() => (this.next(), this.tok.kind === 'name' && (this.next(), this.is(':'))))) {
			this.balanced('[', ']');
			this.annotation();
			this.memberEnd();
			return void this.gone(from);
		}
		const made = this.is('constructor') && !this.derived ? [] : null;
		this.propertyName();
		if (this.is('?') || this.is('!')) this.blank(this.next().at);
		if (this.is('(') || this.is('<')) {
			this.made = made;
			const whole = this.signature();
			this.made = null;
			if (whole && made && made.length > 0) {
				const all = made.map((name) => ` this.${name} = ${name};`).join('');
				this.edits.push([this.tok.at, this.tok.end, `{${all}`, false]);
				this.makes = true;
			}
			if (whole) return isGone ? this.refuse('an abstract method with a body') : void this.block();
			this.memberEnd();
			return void this.gone(from);
		}
		this.annotation();
		if (this.eat('=')) {
			const at = this.end;
			this.assign();
			if (/\bthis\b/.test(this.code.slice(at, this.end))) this.usesThis = true;
		}
		this.memberEnd();
		if (isGone) this.gone(from);
		return undefined;
	}

	memberEnd() {
		if (this.is('}')) return;
		if (!this.eat(';') && !this.tok.line) this.refuse(`"${this.tok.text}" in a class`);
		else this.guard();
	}

	/* ---- statements ---- */

	/* A line ended a statement whose last part is blank now: it must not go on with the next line. */
	guard() {
		const last = this.edits[this.edits.length - 1];
		if (last && last[1] === this.end && last[2] === null && this.tok.line && CONTINUES.has(this.tok.text)) {
			this.edits.push([last[0], last[0] + 1, ';', false]);
			last[0]++;
		}
	}

	endOfStatement() {
		if (this.eat(';') || this.is('}') || this.tok.kind === 'end') return;
		if (!this.tok.line) this.refuse(`"${this.tok.text}" behind the end of a statement`);
		this.guard();
	}

	parenthesized() {
		this.want('(');
		this.inside(() => this.expression());
		this.want(')');
	}

	variables() {
		this.next();
		do {
			this.binding();
			if (this.is('!')) this.blank(this.next().at);
			this.annotation();
			if (this.eat('=')) this.assign();
		} while (this.eat(','));
	}

	isDeclaration() {
		return this.is('var') || this.is('const') || (this.is('let') && this.after((t) => t.kind === 'name' || '[{'.includes(t.text)));
	}

	forStatement() {
		this.next();
		this.eat('await');
		this.want('(');
		this.noIn = true;
		if (this.isDeclaration()) this.variables();
		else if (!this.is(';')) this.expression();
		this.noIn = false;
		if (this.eat('of') || this.eat('in')) this.expression();
		else {
			this.want(';');
			if (!this.is(';')) this.expression();
			this.want(';');
			if (!this.is(')')) this.expression();
		}
		this.want(')');
		this.statement();
	}

	tryStatement() {
		this.next();
		this.block();
		if (this.eat('catch')) {
			if (this.eat('(')) {
				this.binding();
				this.annotation();
				this.want(')');
			}
			this.block();
		}
		if (this.eat('finally')) this.block();
	}

	switchStatement() {
		this.next();
		this.parenthesized();
		this.want('{');
		while (!this.is('}')) {
			if (this.eat('case')) {
				this.inside(() => this.expression());
				this.want(':');
			} else if (this.is('default') && this.after((t) => t.text === ':')) {
				this.next();
				this.next();
			} else this.statement();
		}
		this.want('}');
	}

	enumStatement(from) {
		this.eat('const');
		this.next();
		const name = this.name().text;
		const members = new Set();
		let text = `var ${name} = ((${name}) => {`;
		let last = '-1';
		this.want('{');
		while (!this.is('}')) {
			const key = this.tok.kind === 'string' ? this.next().text : JSON.stringify(this.name().text);
			let [value, isText] = [`${last} + 1`, false];
			if (this.eat('=')) [value, isText] = this.enumValue(name, members);
			else if (last === null) this.refuse('a member without a value behind one that is text');
			text += isText ? ` ${name}[${key}] = ${value};` : ` ${name}[${name}[${key}] = ${value}] = ${key};`;
			last = isText ? null : `${name}[${key}]`;
			members.add(key);
			if (!this.is('}')) this.want(',');
		}
		this.want('}');
		const lines = this.code.slice(from, this.end).split('\n').length - 1;
		this.edits.push([from, this.end, `${text} return ${name}; })({});${'\n'.repeat(lines)}`, false]);
	}

	/* [its text, whether it is a string]. Only what can be known without running anything else. */
	enumValue(name, members) {
		let [text, strings, others] = ['', 0, 0];
		while (!this.is(',') && !this.is('}')) {
			const { kind, text: word } = this.tok;
			if (kind === 'string') strings++;
			else if (kind === 'name') {
				if (!members.has(JSON.stringify(word))) this.refuse('a value of an enum that has to be computed');
				others++;
			} else if (kind === 'number') others++;
			else if (!['+', '-', '*', '/', '%', '|', '&', '^', '~', '<<', '>', '(', ')', '**'].includes(word))
				this.refuse('a value of an enum that has to be computed');
			text += (this.tok.at === this.end ? '' : ' ') + (kind === 'name' ? `${name}[${JSON.stringify(word)}]` : word);
			this.next();
		}
		if (strings > 0 && (others > 0 || strings > 1)) this.refuse('a value of an enum that has to be computed');
		return [text, strings > 0];
	}

	/* Ambient: nothing of it is there when it runs. */
	declareStatement(from) {
		this.next();
		if (this.isDeclaration()) this.variables();
		else if (this.is('function') || this.is('async')) {
			this.eat('async');
			this.next();
			if (this.functionRest()) this.refuse('a declared function with a body');
		} else if (this.is('type')) return void this.typeAlias(from);
		else {
			while (!this.is('{')) {
				if (this.tok.kind === 'end' || this.is(';')) this.refuse('this declaration');
				this.next();
			}
			this.balanced('{', '}');
			return void this.gone(from);
		}
		this.endOfStatement();
		this.gone(from);
	}

	typeAlias(from) {
		this.next();
		this.name();
		if (this.is('<')) this.typeParameters();
		this.want('=');
		this.type();
		this.endOfStatement();
		this.gone(from);
	}

	interfaceStatement(from) {
		this.next();
		this.name();
		if (this.is('<')) this.typeParameters();
		if (this.eat('extends')) {
			do this.type();
			while (this.eat(','));
		}
		this.balanced('{', '}');
		this.gone(from);
	}

	/* Type-only names go; what becomes of the rest is decided later. */
	importStatement(from) {
		this.next();
		if (this.is('type') && this.after((t) => (t.kind === 'name' && t.text !== 'from') || t.text === '{' || t.text === '*')) {
			while (this.tok.kind !== 'string') {
				if (this.is('=') || this.tok.kind === 'end') this.refuse('this import');
				this.next();
			}
			this.next();
			this.endOfStatement();
			return void this.gone(from);
		}
		let inBraces = false;
		while (this.tok.kind !== 'string') {
			if (this.is('=') || this.is(';') || this.tok.kind === 'end') this.refuse('this import');
			if (this.is('{')) inBraces = true;
			if (inBraces && this.is('type') && this.after((t) => t.kind === 'name' && t.text !== 'as')) {
				const at = this.next().at;
				this.next();
				if (this.eat('as')) this.next();
				this.eat(',');
				this.blank(at);
			} else this.next();
		}
		this.next();
		return void this.endOfStatement();
	}

	word() {
		return this.tok.kind === 'name' ? this.tok.text : '';
	}

	/* Words that begin a statement only if a name of the same line follows. */
	typeStatement() {
		const from = this.tok.at;
		const word = this.word();
		const next = this.after((t) => (t.line ? null : t));
		if (!next || (next.kind !== 'name' && !(word === 'declare' || word === 'module'))) return false;
		if (word === 'type' && this.peek(() => (this.next(), this.next(), this.is('=') || this.is('<')))) this.typeAlias(from);
		else if (word === 'interface') this.interfaceStatement(from);
		else if (word === 'declare' && next.kind === 'name') this.declareStatement(from);
		else if (word === 'enum' || (word === 'const' && next.text === 'enum')) this.enumStatement(from);
		else if (word === 'abstract' && next.text === 'class') {
			this.edits.push([from, this.next().end, null, false]);
			this.classRest();
		} else if (word === 'namespace' || (word === 'module' && next.kind !== 'sign')) this.refuse('namespaces');
		else return false;
		return true;
	}

	statement() {
		const from = this.tok.at;
		if (this.is('{')) return this.block();
		if (this.eat(';')) return undefined;
		if (this.is('@')) this.refuse('decorators');
		if (this.tok.kind === 'name' && this.typeStatement()) return undefined;
		if (this.isDeclaration()) {
			this.variables();
			return this.endOfStatement();
		}
		switch (this.word()) {
			case 'function':
				return this.functionStatement(from);
			case 'async':
				if (this.after((t) => t.text === 'function' && !t.line)) {
					this.next();
					return this.functionStatement(from);
				}
				break;
			case 'class':
				return this.classRest();
			case 'if':
				this.next();
				this.parenthesized();
				this.statement();
				return this.eat('else') ? this.statement() : undefined;
			case 'for':
				return this.forStatement();
			case 'while':
			case 'with':
				this.next();
				this.parenthesized();
				return this.statement();
			case 'do':
				this.next();
				this.statement();
				this.want('while');
				this.parenthesized();
				this.eat(';');
				return undefined;
			case 'switch':
				return this.switchStatement();
			case 'try':
				return this.tryStatement();
			case 'return':
			case 'throw':
				this.next();
				if (!this.tok.line && !this.is(';') && !this.is('}') && this.tok.kind !== 'end') this.expression();
				return this.endOfStatement();
			case 'break':
			case 'continue':
			case 'debugger':
				this.next();
				if (!this.tok.line && this.isName()) this.next();
				return this.endOfStatement();
			case 'import':
				if (this.after((t) => t.text !== '(' && t.text !== '.')) return this.importStatement(from);
				break;
			case 'export':
				return this.refuse('exports');
			default:
				if (this.isName() && this.after((t) => t.text === ':')) {
					this.next();
					this.next();
					return this.statement();
				}
		}
		this.expression();
		return this.endOfStatement();
	}

	functionStatement(from) {
		this.next();
		if (this.functionRest()) return void this.block();
		this.endOfStatement();
		return void this.gone(from);
	}

	/* ---- the text ---- */

	run() {
		if (this.code.startsWith('#!')) this.refuse('a "#!" line', 0);
		while (this.tok.kind !== 'end') this.statement();
		const out = this.code.split('');
		for (const [from, to, text, lines] of this.edits)
			for (let i = from; i < to; i++) {
				if (text !== null) out[i] = i === from ? text : '';
				else if (lines || !/[\n\r\u2028\u2029]/.test(out[i])) out[i] = out[i] && ' ';
			}
		return out.join('');
	}
}

function stripTypes(code) {
	return new TypeStripper(code).run();
}
