//! `#[derive(Telemetry)]`: the layout of a struct, by the compiler.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Expr, Fields, Lit, Meta, Result};

/// For a `#[repr(C)]` struct of numbers, bools, `Text`, arrays of them and structs that derive this too; and for a
/// `#[repr(u8)]` (… `i64`) enum without fields, to be a field of one. The first line of a field's doc
/// comment goes into the recording: say the unit there.
#[proc_macro_derive(Telemetry)]
pub fn telemetry(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    let done = match &input.data {
        Data::Struct(data) => of_struct(&input, &data.fields),
        Data::Enum(data) => of_enum(&input, data),
        Data::Union(_) => Err(Error::new_spanned(&input.ident, "a union's bytes may mean several things")),
    };
    done.unwrap_or_else(Error::into_compile_error).into()
}

fn of_struct(input: &DeriveInput, fields: &Fields) -> Result<TokenStream> {
    let name = &input.ident;
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(&input.generics, "a telemetry struct has no parameters"));
    }
    if repr(&input.attrs).as_deref() != Some("C") {
        return Err(Error::new_spanned(name, "add #[repr(C)]: each compiler may lay other structs out differently"));
    }
    let Fields::Named(fields) = fields else {
        return Err(Error::new_spanned(name, "its fields must have names, which the recording shows"));
    };
    let fields = fields.named.iter().map(|field| {
        let (ident, kind) = (&field.ident, &field.ty);
        let said = ident.as_ref().map(|i| i.to_string()).unwrap_or_default();
        let said = said.strip_prefix("r#").unwrap_or(&said).to_owned();
        let comment = comment(&field.attrs);
        quote! {
            ::taut_stamp::telemetry::Field {
                name: #said,
                kind: <#kind as ::taut_stamp::telemetry::FieldType>::KIND,
                count: <#kind as ::taut_stamp::telemetry::FieldType>::COUNT,
                offset: ::core::mem::offset_of!(#name, #ident),
                comment: #comment,
                constants: <#kind as ::taut_stamp::telemetry::FieldType>::CONSTANTS,
            }
        }
    });
    let said = name.to_string();
    Ok(quote! {
        // SAFETY: sizes and offsets are the compiler's.
        unsafe impl ::taut_stamp::telemetry::Telemetry for #name {
            const LAYOUT: ::taut_stamp::telemetry::Layout = ::taut_stamp::telemetry::Layout {
                name: #said,
                size: ::core::mem::size_of::<#name>(),
                fields: &[#(#fields),*],
            };
        }
        // SAFETY: as above.
        unsafe impl ::taut_stamp::telemetry::FieldType for #name {
            const KIND: ::taut_stamp::telemetry::Kind = ::taut_stamp::telemetry::Kind::Struct(
                &<#name as ::taut_stamp::telemetry::Telemetry>::LAYOUT
            );
        }
    })
}

fn of_enum(input: &DeriveInput, data: &syn::DataEnum) -> Result<TokenStream> {
    let name = &input.ident;
    let number = repr(&input.attrs)
        .filter(|repr| ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"].contains(&repr.as_str()))
        .ok_or_else(|| Error::new_spanned(name, "say its size: #[repr(u8)] or like"))?;
    let number = quote::format_ident!("{number}");
    if let Some(variant) = data.variants.iter().find(|variant| !matches!(variant.fields, Fields::Unit)) {
        return Err(Error::new_spanned(variant, "a variant with fields is no number"));
    }
    let constants = data.variants.iter().map(|variant| {
        let ident = &variant.ident;
        let said = shouted(&format!("{name}_{ident}"));
        quote! { (#said, #name::#ident as i64) }
    });
    Ok(quote! {
        // SAFETY: the representation is the number's.
        unsafe impl ::taut_stamp::telemetry::FieldType for #name {
            const KIND: ::taut_stamp::telemetry::Kind = <#number as ::taut_stamp::telemetry::FieldType>::KIND;
            const CONSTANTS: &'static [(&'static str, i64)] = &[#(#constants),*];
        }
    })
}

/// `ServoMode_Stopped` as constants are written: `SERVO_MODE_STOPPED`.
fn shouted(name: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_uppercase() && before != '_' && !before.is_uppercase() {
            out.push('_');
        }
        out.extend(c.to_uppercase());
        before = c;
    }
    out
}

fn repr(attributes: &[Attribute]) -> Option<String> {
    let list = attributes.iter().find(|a| a.path().is_ident("repr"))?.meta.require_list().ok()?;
    list.tokens.to_string().split(',').next().map(|word| word.trim().to_owned())
}

/// The first line of the doc comment.
fn comment(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|a| a.path().is_ident("doc")).filter_map(|a| match &a.meta {
        Meta::NameValue(said) => match &said.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    lines.into_iter().next().unwrap_or_default()
}
