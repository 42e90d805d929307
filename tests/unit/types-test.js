// What berth-node-types.js makes of TypeScript: blanks where types were, and nothing where it does not understand.
'use strict';
const fs = require('fs');
const vm = require('vm');

const source = fs.readFileSync(process.argv[2], 'utf8');
const { stripTypes, Refusal } = vm.runInThisContext(`(() => { ${source}\nreturn { stripTypes, Refusal }; })()`);

// The same but for spaces and stray semicolons.
const squeeze = (s) => s.replace(/\s+/g, '').replace(/;+/g, ';').replace(/^;|;$/g, '').replace(/\{;/g, '{');

const STRIPPED = [
	['let x: number = 1, y: string | null, z!: Map<string, Array<number>>;', 'let x = 1, y, z;'],
	['const f = (a: number, b?: string, ...c: any[]): void => {};', 'const f = (a, b, ...c) => {};'],
	['const g = async <T,>(x: T): Promise<T> => x; const h = <T extends {} = {}>(x: T) => x', 'const g = async (x) => x; const h = (x) => x'],
	['const c = a ? (b) : (d); e = a ? (b): number => 1 : 2', 'const c = a ? (b) : (d); e = a ? (b) => 1 : 2'],
	['a ? (b) : c => d; x ? y => ({ y }) : z => ({ z })', 'a ? (b) : c => d; x ? y => ({ y }) : z => ({ z })'],
	['f<T>(x); new Map<string, A<B<C>>>(); f<T>`a`; a < b; f(a < b, c > d)', 'f(x); new Map(); f`a`; a < b; f(a < b, c > d)'],
	['a << b >> c >>> d; a >>= 1; a >= b; let q: A<B<C>>= d', 'a << b >> c >>> d; a >>= 1; a >= b; let q = d'],
	["x as string; (x as any).y; x! + y!; x!.y![0]!(); <any>x; t = <const>['a']; u = y as const", "x; (x).y; x + y; x.y[0](); x; t = ['a']; u = y"],
	['type A = { a: string; b(): void } | null; interface B<T> extends C, D<T> { x: T }\nfoo()', 'foo()'],
	['type = 5; type\n= 6; declare; var abstract = 1; x = as as as; async; async(1); module.exports = 1', 'type = 5; type\n= 6; declare; var abstract = 1; x = as; async; async(1); module.exports = 1'],
	["declare const X: number; declare function f(a: string): void; declare module 'x' { const y: 1 }\nfoo()", 'foo()'],
	['class A<T> extends B<T> implements C, D<E> { private x: number = 1; static z!: T; declare w: number; [k: string]: any; #p: number = 2 }', 'class A extends B { x = 1; static z; #p = 2 }'],
	['abstract class A { abstract foo(): void; protected abstract x: number; bar<U>(this: A, a: U): a is string { return 1 } }', 'class A { bar(a) { return 1 } }'],
	['class P { constructor(private readonly a: string, public b = 1, c?: number) { f() } }', 'class P { constructor(a, b = 1, c) { this.a = a; this.b = b; f() } }'],
	['function f(a: string): void; function f(a: any) { return a }', 'function f(a) { return a }'],
	['const o = { a: 1 as number, f<T>(x: T): T { return x }, get x(): number { return 1 }, async: 1, get: 2 }', 'const o = { a: 1, f(x) { return x }, get x() { return 1 }, async: 1, get: 2 }'],
	['for (const x of y as any[]) {} for (let i: number = 0; i < 1; i++) {} try { a } catch (e: unknown) { b }', 'for (const x of y) {} for (let i = 0; i < 1; i++) {} try { a } catch (e) { b }'],
	['let f: (a: string) => void = g; let h: new <T>(x: T) => T; let i: A extends infer U extends string ? U : never = 1', 'let f = g; let h; let i = 1'],
	['let a: `a${B}` = c, d: [e: string, ...f: G[]] = h, i: { [K in keyof T]?: T[K] }[] = j, k: typeof import("l").m = n', 'let a = c, d = h, i = j, k = n'],
	['const {a, b: {c} = {} as any, ...d}: {a: any} = x, [e, , f = 1 as number]: any[] = y', 'const {a, b: {c} = {}, ...d} = x, [e, , f = 1] = y'],
	['const t = `a${b as string}c${`d${e!}`}`; r = /a\\/[/]b/g; x = (a) / b / c; if (x) /re/.test(y as any)', 'const t = `a${b}c${`d${e}`}`; r = /a\\/[/]b/g; x = (a) / b / c; if (x) /re/.test(y)'],
	["import a, { type B, c, type D as E } from 'x'; import type H from 'y'; import type from 'q'", "import a, { c, } from 'x'; import type from 'q'"],
	['a?.b!.c?.[d]!?.(e); a?.<T>(b); new (foo as any)(); new Foo<T>; delete a.b!', 'a?.b.c?.[d]?.(e); a?.(b); new (foo)(); new Foo; delete a.b'],
];
// A line end that TypeScript takes as the end of a statement must stay one.
const KEPT_APART = ['foo as string\n(bar)', 'x\ntype A = 1\n(y)', 'x\ninterface A {}\n[y]', "class A { a = 1\n public ['b'] = 2 }"];
const REFUSED = ['@dec class A {}', 'namespace A { export const b = 1 }', "import x = require('y')", 'enum B { P = foo() }', 'export const x: number = 1', 'class A extends B { constructor(private x: any) { super() } }', 'class A { y = this.x; constructor(private x: any) {} }', 'let x: = 1', 'f(', 'let x: number y'];
const SAME = ['a < b && c > (d)', 'var a = b ? { c: d } : e', 'x = y / 2; z = /[/]\\//.test(a) ? 1 : 2', 'l: for (;;) break l', 'a\n++b', 'for (var k in o) ;', '({ get a() { return 1 }, set a(v) {}, *g() {}, async h() {} })'];

const tests = [];
for (const [ts, js] of STRIPPED)
	tests.push([ts, () => { const got = stripTypes(ts); return squeeze(got) === squeeze(js) && got.split('\n').length === ts.split('\n').length ? null : got; }]);
for (const ts of KEPT_APART)
	tests.push([ts, () => { const got = stripTypes(ts); return /;\s*[([]|; *$|;/m.test(got) ? null : got; }]);
for (const ts of REFUSED)
	tests.push([ts, () => { try { return stripTypes(ts); } catch (e) { return e instanceof Refusal ? null : e.stack; } }]);
for (const js of SAME)
	tests.push([js, () => { const got = stripTypes(js); return got === js ? null : got; }]);
tests.push(['enum', () => { const got = vm.runInNewContext(`${stripTypes("enum A { X, Y = 2, W, Z = 'z', V = 1 << 2, U = X | Y }")}; JSON.stringify(A)`);
	const want = '{"0":"X","2":"U","3":"W","4":"V","X":0,"Y":2,"W":3,"Z":"z","V":4,"U":2}'; return got === want ? null : got; }]);

console.log(`1..${tests.length}`);
tests.forEach(([name, run], i) => {
	let wrong;
	try { wrong = run(); } catch (e) { wrong = e.stack; }
	if (wrong !== null) console.log(`# became: ${JSON.stringify(wrong)}`);
	console.log(`${wrong === null ? 'ok' : 'not ok'} ${i + 1} - ${JSON.stringify(name).replaceAll('#', '')}`);
});
